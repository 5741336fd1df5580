package fakeserver

import (
	"slices"
	"sync"
	"time"

	"holdfast/wire"
)

// Grace is how long a ticketed attempt outlives its connection.
const Grace = 5 * time.Second

// Table is a lock table in the plainest way: one holder per key (slots and
// shared mode are counted, not checked against each other), a queue, timers.
type Table struct {
	mu      sync.Mutex
	token   uint64
	keys    map[string]*entry
	history []Ended
}

type entry struct {
	key     string
	holders []*attempt
	queue   []*attempt
}

// attempt is an acquire that waits or holds.
type attempt struct {
	e         *entry
	c         *Conn // that asked last; nil = gone
	r         wire.Request
	token     uint64 // 0 while it waits
	until     time.Time
	delivered bool
	timer     *time.Timer // of the wait, then of the lease
	grace     *time.Timer
}

// Ended is how a grant ended.
type Ended struct {
	Key   string
	Token uint64
	How   string // released, expired, forced, withdrawn
	At    time.Time
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{keys: make(map[string]*entry)} }

// Holder returns the token that holds key, 0 = none.
func (t *Table) Holder(key string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.keys[key]; e != nil && len(e.holders) > 0 {
		return e.holders[0].token
	}
	return 0
}

// Busy returns the keys that are held or waited for.
func (t *Table) Busy() (keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, e := range t.keys {
		if len(e.holders)+len(e.queue) > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Waiting returns how many wait for key.
func (t *Table) Waiting(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.keys[key]; e != nil {
		return len(e.queue)
	}
	return 0
}

// History returns how grants ended, in order.
func (t *Table) History() []Ended {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.history)
}

// Take makes somebody else hold key, with a token of its own.
func (t *Table) Take(key string, lease time.Duration) (token uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &attempt{e: t.entry(key), delivered: true}
	a.r.LeaseMS = uint32(lease.Milliseconds())
	t.grant(a)
	return a.token
}

// End ends the grant with token: "released" or, with a push, "forced".
func (t *Table) End(token uint64, how string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.find(token); a != nil {
		t.end(a, how)
	}
}

func (t *Table) entry(key string) *entry {
	e := t.keys[key]
	if e == nil {
		e = &entry{key: key}
		t.keys[key] = e
	}
	return e
}

func (t *Table) find(token uint64) *attempt {
	for _, e := range t.keys {
		for _, a := range e.holders {
			if a.token == token {
				return a
			}
		}
	}
	return nil
}

func (t *Table) acquire(c *Conn, r *wire.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entry(string(r.Key))
	if r.Flags&wire.FlagRetry != 0 && t.claim(e, c, r) {
		return
	}
	a := &attempt{e: e, c: c, r: *r}
	if len(e.queue) == 0 && e.room(a) {
		t.grant(a)
		return
	}
	if r.Flags&wire.FlagTry != 0 {
		c.Reply(r, wire.Reply{Status: wire.StatusNotGranted})
		return
	}
	e.queue = append(e.queue, a)
	if r.WaitMS != 0 {
		a.timer = time.AfterFunc(time.Duration(r.WaitMS)*time.Millisecond, func() { t.waitOver(a) })
	}
}

// claim finds the attempt that r repeats and moves it to c.
func (t *Table) claim(e *entry, c *Conn, r *wire.Request) bool {
	for _, a := range slices.Concat(e.holders, e.queue) {
		if a.r.Ticket != r.Ticket {
			continue
		}
		if a.token == 0 && a.c != nil {
			a.c.Reply(&a.r, wire.Reply{Status: wire.StatusCancelled})
		}
		stop(a.grace)
		a.grace = nil
		a.c, a.r.ID = c, r.ID
		if a.token != 0 {
			t.tell(a)
		}
		return true
	}
	return false
}

// room says whether a can hold beside those that do.
func (e *entry) room(a *attempt) bool {
	shared := a.r.Flags&wire.FlagShared != 0
	for _, h := range e.holders {
		shared = shared && h.r.Flags&wire.FlagShared != 0
	}
	return shared || len(e.holders) < max(1, int(a.r.Slots))
}

func (t *Table) grant(a *attempt) {
	stop(a.timer)
	t.token++
	a.token = t.token
	a.e.holders = append(a.e.holders, a)
	t.lease(a, a.r.LeaseMS)
	if a.c != nil {
		t.tell(a)
	} else {
		t.orphan(a)
	}
}

func (t *Table) lease(a *attempt, ms uint32) {
	if ms == 0 {
		ms = 30_000
	}
	stop(a.timer)
	d := time.Duration(ms) * time.Millisecond
	a.until = time.Now().Add(d)
	a.timer = time.AfterFunc(d, func() { t.expired(a) })
}

func (t *Table) tell(a *attempt) {
	left := time.Until(a.until)
	a.c.Reply(&a.r, wire.Reply{Status: wire.StatusGranted, Token: a.token, LeaseMS: uint32(left.Milliseconds())})
}

func (t *Table) end(a *attempt, how string) {
	stop(a.timer)
	stop(a.grace)
	a.e.holders = slices.DeleteFunc(a.e.holders, func(h *attempt) bool { return h == a })
	t.history = append(t.history, Ended{a.e.key, a.token, how, time.Now()})
	reason := map[string]wire.Reason{"expired": wire.ReasonExpired, "forced": wire.ReasonForced, "superseded": wire.ReasonSuperseded}[how]
	if a.c != nil && reason != 0 {
		a.c.Send(wire.Reply{Op: wire.OpLost, Key: []byte(a.e.key), Token: a.token, Reason: reason})
	}
	t.serveQueue(a.e)
}

func (t *Table) serveQueue(e *entry) {
	for len(e.queue) > 0 && e.room(e.queue[0]) {
		next := e.queue[0]
		e.queue = e.queue[1:]
		t.grant(next)
	}
}

func (t *Table) expired(a *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.find(a.token) == a && !time.Now().Before(a.until) {
		t.end(a, "expired")
	}
}

func (t *Table) waitOver(a *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(a, wire.StatusNotGranted)
}

// leave takes a out of the queue, if it is there, and tells its connection why.
func (t *Table) leave(a *attempt, status wire.Status) bool {
	i := slices.Index(a.e.queue, a)
	if i < 0 {
		return false
	}
	a.e.queue = slices.Delete(a.e.queue, i, i+1)
	stop(a.timer)
	stop(a.grace)
	if a.c != nil && status != 0 {
		a.c.Reply(&a.r, wire.Reply{Status: status})
	}
	t.serveQueue(a.e)
	return true
}

func (t *Table) release(c *Conn, r *wire.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.find(r.Token); a != nil && a.e.key == string(r.Key) {
		c.Reply(r, wire.Reply{Status: wire.StatusReleased})
		t.end(a, "released")
		return
	}
	c.Reply(r, wire.Reply{Status: wire.StatusNone})
}

func (t *Table) extend(c *Conn, r *wire.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.find(r.Token)
	if a == nil || a.e.key != string(r.Key) {
		c.Reply(r, wire.Reply{Status: wire.StatusNone})
		return
	}
	stop(a.grace)
	a.grace, a.c, a.delivered = nil, c, true
	t.lease(a, r.LeaseMS)
	c.Reply(r, wire.Reply{Status: wire.StatusExtended, LeaseMS: uint32(time.Until(a.until).Milliseconds())})
}

func (t *Table) cancel(c *Conn, r *wire.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.keys {
		for _, a := range e.queue {
			if a.c == c && a.r.ID == r.Target {
				t.leave(a, wire.StatusCancelled)
				c.Reply(r, wire.Reply{Status: wire.StatusCancelled})
				return
			}
		}
	}
	c.Reply(r, wire.Reply{Status: wire.StatusNone})
}

func (t *Table) delivered(token uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.find(token); a != nil {
		a.delivered = true
	}
}

// forget handles the end of a connection. With moved its waiters are told M first.
func (t *Table) forget(c *Conn, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.keys {
		for _, a := range slices.Concat(e.holders, e.queue) {
			if a.c != c {
				continue
			}
			if moved && a.token == 0 {
				c.s.mu.Lock()
				addr, node := c.s.Active, c.s.ActiveNode
				c.s.mu.Unlock()
				c.Reply(&a.r, wire.Reply{Status: wire.StatusMoved, Addr: []byte(addr), Node: []byte(node)})
			}
			a.c = nil
			t.orphan(a)
		}
	}
}

// orphan lets what nobody claims end after the grace.
func (t *Table) orphan(a *attempt) {
	if a.token != 0 && a.delivered && a.r.Flags&wire.FlagBound == 0 {
		return
	}
	if a.r.Ticket.IsZero() {
		panic("the client sends tickets with every acquire")
	}
	stop(a.grace)
	var g *time.Timer
	g = time.AfterFunc(Grace, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if a.grace != g {
			return
		}
		if !t.leave(a, 0) && t.find(a.token) == a {
			t.end(a, "withdrawn")
		}
	})
	a.grace = g
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
