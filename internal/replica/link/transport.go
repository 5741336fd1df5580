package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/replica"
)

const (
	// maxLinks bounds the links of one name that stand at once. Two are usual for
	// a moment, when both sides have dialled; more while the machine finds out
	// which of them are dead.
	maxLinks = 4

	// maxGuests bounds the connections of one name in the handshake.
	maxGuests = 4
)

// Owner is whom the transport tells: the node, around its machine.
type Owner interface {
	// Step takes in one of replica.LinkUp, LinkDown, DialFailed, Received and
	// Pull, and carries out the actions that follow before it returns; Push may be
	// called from within. Many goroutines call it at once, but for one link
	// LinkUp comes first, messages in the order sent, and nothing after LinkDown
	// or a CloseLink but what was under way. What an input points into is lent
	// until Step returns.
	Step(in replica.Input)
}

// Transport holds the links of one node. It is the http.Handler of Path.
type Transport struct {
	// Static after construction.
	cfg   Config
	log   *slog.Logger
	name  string                    // of this node
	peers [replica.MaxNodes]*dialer // nil: this node, or not in the list

	lines quiet
	flaps [replica.MaxNodes + 1]atomic.Bool // by rank, from Nobody on: the last link did not stay

	mu      sync.Mutex // guards what follows
	owner   Owner      // nil: not running
	ran     bool
	last    replica.LinkID
	links   map[replica.LinkID]*conn
	guests  map[replica.Rank][]net.Conn // in the handshake, as acceptor, oldest first
	running sync.WaitGroup              // added to only while there is an owner
}

// New makes a transport. Nothing happens before Run.
func New(cfg Config) (*Transport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	t := &Transport{
		cfg: cfg, log: cfg.Log, name: cfg.Peers[cfg.Rank].Name,
		links: map[replica.LinkID]*conn{}, guests: map[replica.Rank][]net.Conn{},
	}
	for i, p := range cfg.Peers {
		if r := replica.Rank(i); r != cfg.Rank {
			t.peers[i] = newDialer(t, r, p)
		}
	}
	return t, nil
}

// Run dials, accepts and carries messages until ctx ends; then it lets what was
// sent go out, within Config.Timeout, closes every link, and returns nil once
// all its goroutines are gone. Until then owner must take steps. A transport runs once.
func (t *Transport) Run(ctx context.Context, owner Owner) error {
	if err := t.open(owner); err != nil {
		return err
	}
	for _, d := range t.peers {
		if d != nil {
			t.running.Go(func() { d.run(ctx) })
		}
	}
	<-ctx.Done()
	t.shut()
	t.running.Wait()
	return nil
}

func (t *Transport) open(owner Owner) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ran {
		return errors.New("peer links: a transport runs once")
	}
	t.ran, t.owner = true, owner
	return nil
}

func (t *Transport) shut() {
	t.mu.Lock()
	t.owner = nil
	links := slices.Collect(maps.Values(t.links))
	guests := slices.Concat(slices.Collect(maps.Values(t.guests))...)
	t.mu.Unlock()
	by := time.Now().Add(t.cfg.Timeout)
	for _, c := range links {
		c.out.close(errStopping.Error(), by)
	}
	for _, raw := range guests {
		raw.Close()
	}
}

// Push carries out an action of the machine, if it is one of Send, Wake,
// CloseLink and Redial, and reports whether it is. It never waits and never
// calls the owner. A link that is not there any more is passed over.
func (t *Transport) Push(a replica.Action) bool {
	switch a := a.(type) {
	case replica.Send:
		if c := t.link(a.Link); c != nil {
			c.out.send(a.Lane, a.Msg)
		}
	case replica.Wake:
		if c := t.link(a.Link); c != nil {
			c.out.wakeUp()
		}
	case replica.CloseLink:
		if c := t.link(a.Link); c != nil {
			c.out.close(a.Why, time.Now().Add(t.cfg.Timeout))
			t.remove(c)
		}
	case replica.Redial:
		if d := t.peer(a.Peer); d != nil { // while another link to it stands, this waits: of two that break together the machine minds one
			signal(d.now)
		}
	default:
		return false
	}
	return true
}

func (t *Transport) link(id replica.LinkID) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.links[id]
}

func (t *Transport) peer(r replica.Rank) *dialer {
	if r < 0 || int(r) >= len(t.peers) {
		return nil
	}
	return t.peers[r]
}

// rankOf is the rank of a peer by its name; Nobody for this node's own, and for
// one that is not in the list: the machine says what it thinks of those.
func (t *Transport) rankOf(name string) replica.Rank {
	for r, p := range t.cfg.Peers {
		if p.Name == name && replica.Rank(r) != t.cfg.Rank {
			return replica.Rank(r)
		}
	}
	return replica.Nobody
}

// linked says whether a link to a peer stands.
func (t *Transport) linked(r replica.Rank) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.countLocked(r) > 0
}

func (t *Transport) countLocked(r replica.Rank) (n int) {
	for _, c := range t.links {
		if c.rank == r {
			n++
		}
	}
	return n
}

// add makes c a link, from here on in Push's reach. The caller runs it.
func (t *Transport) add(c *conn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.owner == nil:
		return errStopping
	case t.countLocked(c.rank) >= maxLinks:
		return &refusal{text: fmt.Sprintf("%d links to node %q stand already", maxLinks, c.name)}
	}
	t.last++
	c.id, c.owner = t.last, t.owner
	t.links[c.id] = c
	t.running.Add(1)
	return nil
}

// remove takes c out of Push's reach. False: somebody did before.
func (t *Transport) remove(c *conn) bool {
	t.mu.Lock()
	if t.links[c.id] != c {
		t.mu.Unlock()
		return false
	}
	delete(t.links, c.id)
	t.mu.Unlock()
	c.gone.Store(true)
	if d := t.peer(c.rank); d != nil {
		d.lost(time.Since(c.since))
	}
	return true
}

// step tells the owner of what belongs to no link, while there is one.
func (t *Transport) step(in replica.Input) {
	t.mu.Lock()
	owner := t.owner
	t.mu.Unlock()
	if owner != nil {
		owner.Step(in)
	}
}

// enter counts one more goroutine for Run to wait for; false: Run is not there to wait.
func (t *Transport) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner == nil {
		return false
	}
	t.running.Add(1)
	return true
}

// admit gives a connection its place in the handshake. The oldest one of that
// name makes room: a peer that is real needs its own for an instant only, so
// that recorded requests, sent again and again, cannot keep it out.
func (t *Transport) admit(r replica.Rank, raw net.Conn) bool {
	t.mu.Lock()
	if t.owner == nil {
		t.mu.Unlock()
		return false
	}
	of, oldest := append(t.guests[r], raw), net.Conn(nil)
	if len(of) > maxGuests {
		oldest = of[0] // before Delete moves the others to its place
		of = slices.Delete(of, 0, 1)
	}
	t.guests[r] = of
	t.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	return true
}

func (t *Transport) dismiss(r replica.Rank, raw net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.guests[r] = slices.DeleteFunc(t.guests[r], func(g net.Conn) bool { return g == raw })
}

// signal puts a token into a one-slot channel, if there is none.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
