package node

import (
	"time"

	"holdfast/internal/locks"
)

// Session is one client of the node: a connection, or one HTTP request. Its
// methods are called by one goroutine at a time.
type Session struct {
	// Static after construction.
	node *Node
	id   locks.Session
	sink Sink
	from locks.Origin // for people who look
	open locks.Time   // since when

	// Owned by the goroutine that calls the methods.
	others []*Session // scratch: sessions that a batch made replies for

	// Guarded by node.mu.
	touched uint64 // the last hold of the mutex in which a reply was made for it
	hidden  bool   // it is closing: its sink is told nothing more
	closed  bool   // nothing of it is left in the table
}

// Open begins a session whose replies go to sink. Every session must be closed.
func (n *Node) Open(o locks.Origin, sink Sink) *Session {
	s := &Session{node: n, sink: sink, from: o}
	now := n.lock()
	s.open = now
	s.id = n.sessions.add(s, n.cfg.Table.Rank)
	fx := n.takeEffects()
	n.table.Do(now, &locks.Command{Op: locks.OpAttach, Session: s.id, Origin: &o}, fx)
	n.giveEffects(fx)
	n.mu.Unlock()
	return s
}

// ID returns the session's number.
func (s *Session) ID() locks.Session { return s.id }

// Do runs a batch of commands at one instant, setting their Session. Replies
// are pushed to the sinks of all sessions concerned before it returns, unless a
// standby has to acknowledge first; the others' sinks are flushed, its own is
// left to the caller. While the node is frozen Do waits, a few seconds at the
// most. A node that is not the active answers each command with Moved.
func (s *Session) Do(batch []locks.Command) {
	if len(batch) == 0 {
		return
	}
	s.submit(parked{s: s, batch: batch})
}

func (s *Session) submit(p parked) {
	n := s.node
	now := n.lock()
	if p.batch == nil && !s.hidden { // in one hold with the first piece: nothing may be granted to it in between
		s.hidden = true
		n.sessions.hide(s.id)
	}
	var wait chan struct{}
	if !n.submitLocked(now, p) {
		wait = make(chan struct{})
		n.parked[len(n.parked)-1].done = func() { close(wait) }
	}
	s.others = n.unlock(s, s.others)
	if wait != nil {
		<-wait
	}
}

// Submit is Do for callers that must not wait: it returns false where the
// batch has to wait for the end of a freeze, and calls done, under the node's
// mutex, when it was done. Until then the batch and its keys must stay as they are.
func (s *Session) Submit(batch []locks.Command, done func()) bool {
	n := s.node
	now := n.lock()
	ran := n.submitLocked(now, parked{s, batch, done})
	s.others = n.unlock(s, s.others)
	return ran
}

// latest is how long a batch may take before its replies have to be judged
// again: a process that was stopped in the middle must not tell a client that
// it holds a lease that has run out meanwhile.
const latest = 20 * time.Millisecond

// catchUpLocked brings replies that were held up for long to the present.
func (n *Node) catchUpLocked(decided locks.Time, fx *locks.Effects) {
	now := n.clock.now()
	late := now.Sub(decided)
	if late < latest {
		return
	}
	for i := range fx.Replies {
		if r := &fx.Replies[i]; r.Lease > 0 {
			r.Lease = max(r.Lease-late, 0)
		}
	}
	if n.machine.MayServe(machineTime(now)) { // else nothing may end now: it does once the machine has looked around
		n.recordDueLocked(now, fx)
		n.table.Advance(now, 0, fx)
	}
}

// Undelivered says that a grant of this session never reached its client: it is
// withdrawn, at once without a ticket, else after the grace. It may be called
// after Close too.
func (s *Session) Undelivered(key []byte, token locks.Token) {
	s.Do([]locks.Command{{Op: locks.OpUndelivered, Key: key, Token: token}})
}

// Close ends the session. Nothing is pushed to its sink once Close has
// returned. Its waiters leave the queue, those with a ticket after the grace.
func (s *Session) Close() {
	n := s.node
	for more := true; more; { // others have their turn: a connection may leave tens of thousands of waiters
		s.submit(parked{s: s})
		n.mu.Lock()
		more = !s.closed
		n.mu.Unlock()
	}
}

// Abandon is Close for callers that must not wait: while the node is frozen,
// what the session has left in the table stays until it is not.
func (s *Session) Abandon() {
	n := s.node
	now := n.lock()
	s.hidden = true
	n.sessions.hide(s.id)
	for !s.closed && n.submitLocked(now, parked{s: s}) {
	}
	n.unlock(nil, nil)
}

// registry finds sessions by number: a slot in the low bits, above it a
// generation that never comes back, above that the node's rank, so that after
// a failover a number means nobody on another node.
type registry struct {
	slots  []*Session // nil: free, or closing
	unused []int32
	opened uint64
	n      int
}

const (
	slotMask = 1<<locks.SlotBits - 1
	rankBits = 3
)

func (r *registry) add(s *Session, rank uint8) locks.Session {
	var slot int
	if n := len(r.unused); n > 0 {
		slot = int(r.unused[n-1])
		r.unused = r.unused[:n-1]
	} else {
		slot = len(r.slots)
		if slot > slotMask {
			panic("node: two million sessions are open: the bound on connections is missing")
		}
		r.slots = append(r.slots, nil)
	}
	r.slots[slot] = s
	r.opened++
	r.n++
	return locks.Session(uint64(rank)<<(64-rankBits) | r.opened<<locks.SlotBits | uint64(slot))
}

// get returns the open session of that number, nil if there is none.
func (r *registry) get(id locks.Session) *Session {
	slot := int(id & slotMask)
	if id == 0 || slot >= len(r.slots) || r.slots[slot] == nil || r.slots[slot].id != id {
		return nil
	}
	return r.slots[slot]
}

// hide makes a session unknown; free lets its slot be taken again.
func (r *registry) hide(id locks.Session) {
	r.slots[id&slotMask] = nil
	r.n--
}

func (r *registry) free(id locks.Session) { r.unused = append(r.unused, int32(id&slotMask)) }
