package client

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Event is something that happened to a client; see WithObserver. Fields that
// do not belong to its Kind are empty.
type Event struct {
	Kind  EventKind
	Addr  string // of the connection; EventMoved and EventActive: of the active, as far as known
	Node  string // its name
	Key   string // of the lock
	Token uint64 // of the lock
	Err   error  // EventDisconnected: why; EventLost: the *LostError
}

// EventKind says what happened.
type EventKind uint8

// The kinds of events.
const (
	EventConnected    EventKind = iota + 1 // a node has welcomed the client
	EventDisconnected                      // a connection has ended
	EventActive                            // another node is known to be the active
	EventMoved                             // a node has sent a request elsewhere
	EventGranted
	EventExtended
	EventReleased
	EventLost
)

var eventNames = [...]string{
	EventConnected: "connected", EventDisconnected: "disconnected", EventActive: "active", EventMoved: "moved",
	EventGranted: "granted", EventExtended: "extended", EventReleased: "released", EventLost: "lost",
}

// String returns the name of the kind, such as "connected".
func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// emit calls the observer. No mutex may be held.
func (c *Client) emit(e Event) {
	if c.cfg.observe != nil {
		c.cfg.observe(e)
	}
}

// activeChanged reports a new active.
func (c *Client) activeChanged(addr, node string) {
	c.cfg.log.Info("active", "addr", addr, "node", node)
	c.emit(Event{Kind: EventActive, Addr: addr, Node: node})
}

// counters count since the client was made.
type counters struct {
	acquires, grants, refused, releases, extensions, lost atomic.Uint64
	retries, redirects, connects, pings, abandoned        atomic.Uint64
}

// Counters count what a client has done since it was made.
type Counters struct {
	Acquires     uint64 // calls of Acquire and TryAcquire, also by Do and Lead
	Grants       uint64 // of those, granted
	NotGranted   uint64 // of those, ended by an error
	Extensions   uint64
	Releases     uint64 // that the server confirmed
	Lost         uint64 // locks that ended otherwise
	Retries      uint64 // requests repeated because an answer did not come
	Redirects    uint64 // answers that named another node
	Connects     uint64 // connections made
	Pings        uint64
	LeftToLeases uint64 // locks that could not be given back, so that only the lease ends them
}

// ConnStatus is the state of one connection.
type ConnStatus struct {
	Addr      string
	Node      string // who answered there last; empty if nobody has yet
	Followed  bool   // not configured, but named by a node
	Connected bool
	Standby   bool      // connected, and known not to be the active
	Since     time.Time // when that began; zero if nothing has happened yet
	Pending   int       // requests that are not answered yet
	Err       error     // why it is not connected, if it is not
}

// Status is a snapshot of a client.
type Status struct {
	Active   string // name of the active node, or its address if it has none; empty = none known
	Held     int    // locks held
	Conns    []ConnStatus
	Counters Counters
}

// Status returns what the client is connected to and what it has done.
func (c *Client) Status() Status {
	s := Status{Held: c.watch.count(), Counters: c.count.snapshot()}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Active = c.active
	for _, m := range c.members {
		cs := ConnStatus{Addr: m.addr, Node: m.node, Followed: m.followed, Since: m.since, Err: m.err}
		if n := m.conn; n != nil {
			cs.Connected, cs.Standby, cs.Err = true, n.standby, nil
			cs.Pending = n.pending()
		}
		s.Conns = append(s.Conns, cs)
	}
	return s
}

func (n *conn) pending() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.table.pending()
}

func (k *counters) snapshot() Counters {
	return Counters{
		Acquires: k.acquires.Load(), Grants: k.grants.Load(), NotGranted: k.refused.Load(),
		Extensions: k.extensions.Load(), Releases: k.releases.Load(), Lost: k.lost.Load(),
		Retries: k.retries.Load(), Redirects: k.redirects.Load(), Connects: k.connects.Load(),
		Pings: k.pings.Load(), LeftToLeases: k.abandoned.Load(),
	}
}
