package client

import (
	"sync"
	"time"

	"holdfast/wire"
)

// debt is a lock that must not stay behind: a grant to give back, or an
// attempt given up that may still be granted. It is settled in the background,
// retried like a release and for as long; after that only the lease is left to
// end it. The watch rings it for each try; answers ring it sooner.
type debt struct {
	alarm

	// Static.
	c       *Client
	key     string
	leaseMS uint32
	slots   uint16
	flags   wire.Flags
	ticket  wire.Ticket

	mu    sync.Mutex // guards what follows
	token uint64     // to release; 0 = not known: ask by ticket
	until instant    // no more tries after that; 0 = none was made
	hops  int        // redirects in a row
	over  bool
}

// maxDebts bounds what is owed at once; more is left to the leases.
const maxDebts = 1 << 17

// tryTime is how long a release, or a try to settle a debt, waits for its
// answer before another connection is tried beside it.
const tryTime = time.Second

// debt takes on what a may leave behind. Nothing happens until it is due, or
// owns a call that is answered.
func (a *acquisition) debt() *debt {
	c := a.c
	d := &debt{
		c: c, key: a.key, leaseMS: a.spec.leaseMS, slots: a.spec.slots, ticket: a.spec.ticket,
		flags: a.spec.flags&(wire.FlagShared|wire.FlagBound) | wire.FlagTry | wire.FlagRetry,
	}
	return c.owe(d)
}

// debt takes on the release of l.
func (l *Lock) debt() *debt {
	return l.c.owe(&debt{c: l.c, key: l.key, token: l.token})
}

func (c *Client) owe(d *debt) *debt {
	d.who = d
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	if c.watch.owed >= maxDebts {
		d.over = true
		c.count.abandoned.Add(1)
		return d
	}
	c.watch.owed++
	return d
}

// settle ends a debt, whatever became of it.
func (d *debt) settle() {
	d.mu.Lock()
	over := d.over
	d.over = true
	d.mu.Unlock()
	if over {
		return
	}
	w := &d.c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeLocked(&d.alarm)
	if w.owed--; w.owed == 0 && w.clear != nil {
		close(w.clear)
		w.clear = nil
	}
}

// settleAll waits until nothing is owed, for at most d.
func (c *Client) settleAll(d time.Duration) {
	w := &c.watch
	w.mu.Lock()
	if w.owed == 0 {
		w.mu.Unlock()
		return
	}
	w.clear = make(chan struct{})
	cleared := w.clear
	w.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-cleared:
	case <-timer.C:
	}
}

// due has the watch try to settle d at t.
func (d *debt) due(t instant) { d.c.watch.set(&d.alarm, t) }

// ring makes one try.
func (d *debt) ring(now instant) (again instant) {
	c := d.c
	d.mu.Lock()
	if d.until == 0 {
		d.until = now.add(c.cfg.releaseFor)
	}
	token, over, late := d.token, d.over, now >= d.until
	d.mu.Unlock()
	if over {
		return 0
	}
	n := c.pick()
	if late || n == nil && c.closing.Load() {
		c.count.abandoned.Add(1)
		c.cfg.log.Warn("gave up releasing; the lease will end it", "key", d.key, "token", token)
		d.settle()
		return 0
	}
	if n == nil {
		c.suspect()
		return now.add(c.cfg.releaseEvery)
	}
	if token != 0 {
		n.release(d, token, now)
	} else {
		n.reclaim(d, now)
	}
	return now.add(tryTime)
}

// release asks for the release of token.
func (n *conn) release(d *debt, token uint64, now instant) {
	cl := n.c.calls.get(d.key)
	cl.owner = d
	if n.send(cl, &wire.Request{Op: wire.OpRelease, Token: token}, now) != nil {
		n.c.calls.put(cl)
		d.due(now.add(n.c.cfg.releaseEvery))
	}
}

// reclaim asks what became of an attempt and cancels it in the same breath: a
// grant is answered again, a place in the queue is moved here and withdrawn,
// and if there is neither, at worst a lock is taken that was free, and given
// back.
func (n *conn) reclaim(d *debt, now instant) {
	cl := n.c.calls.get(d.key)
	cl.owner = d
	r := wire.Request{Op: wire.OpAcquire, Flags: d.flags, LeaseMS: d.leaseMS, Slots: d.slots, Ticket: d.ticket}
	n.mu.Lock()
	if n.enqueueLocked(cl, &r, now) != nil {
		n.mu.Unlock()
		n.c.calls.put(cl)
		d.due(now.add(n.c.cfg.releaseEvery))
		return
	}
	n.cancelLocked(cl.id, now)
	n.unlockAndWrite()
}

// finish takes the answer to a try, or to the acquire that was given up.
func (d *debt) finish(cl *call) {
	now := d.c.clock.now()
	res := &cl.res
	switch {
	case res.err != nil:
		d.failed(res.err, now)
	case res.status == wire.StatusMoved:
		d.moved(res, now)
	case cl.op == wire.OpAcquire && res.status == wire.StatusGranted:
		d.owes(res.token, now)
	default: // released, not held, not granted, withdrawn: nothing is left behind
		d.settle()
	}
}

// owes notes that it is token that must be released.
func (d *debt) owes(token uint64, now instant) {
	d.mu.Lock()
	another := d.over || d.token != 0 && d.token != token
	if !another {
		d.token, d.hops = token, 0
	}
	d.mu.Unlock()
	if another {
		// A try that was thought lost was read late and took the lock anew.
		d = d.c.owe(&debt{c: d.c, key: d.key, token: token})
	}
	d.due(now)
}

func (d *debt) failed(err error, now instant) {
	se, ok := err.(*ServerError)
	switch {
	case !ok:
		d.due(now) // the next connection, if there is one
	case se.Code == wire.CodeUnavailable || se.Code == wire.CodeLimit:
		d.due(now.add(d.c.cfg.releaseEvery))
	default:
		d.c.cfg.log.Warn("cannot release", "key", d.key, "err", err)
		d.settle()
	}
}

func (d *debt) moved(res *result, now instant) {
	d.c.moved(res.conn, res.addr, res.node)
	d.mu.Lock()
	d.hops++
	pause := d.hops > maxHops || res.addr == ""
	if pause {
		d.hops = 0
	}
	d.mu.Unlock()
	if pause {
		now = now.add(d.c.cfg.releaseEvery)
	}
	d.due(now)
}
