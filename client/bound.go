package client

import (
	"time"

	"holdfast/wire"
)

// Locks that are bound to their connection. When it drops, or its node stops
// being the active, the server keeps the grant for its reattach grace; within
// that time the client moves it to another connection by asking again with the
// ticket.

// boundGrace is how long a bound lock counts as held without a connection: a
// little less than the server's default grace of 5 s.
const boundGrace = 4 * time.Second

// mooring is the owner of an acquire that moves a bound lock.
type mooring struct{ l *Lock }

// adrift finds the locks that are bound to n, which has ended or does not lead
// to the active any more.
func (c *Client) adrift(n *conn) {
	for _, l := range c.watch.boundTo(n) {
		l.setAdrift(n)
	}
}

// setAdrift makes the watch move l away from n.
func (l *Lock) setAdrift(n *conn) {
	w := &l.c.watch
	now := l.c.clock.now()
	w.mu.Lock()
	wake := false
	if l.conn == n && l.adriftTo == 0 && l.ended.Load() == nil {
		l.adriftTo = now.add(boundGrace)
		wake = w.setLocked(&l.alarm, now)
	}
	w.mu.Unlock()
	if wake {
		w.rouse()
	}
}

// moor asks for the lock on another connection.
func (l *Lock) moor(now, limit instant) (again instant) {
	c := l.c
	if now >= limit {
		l.lose(LostConnection)
		return 0
	}
	n := c.pick()
	if n == nil {
		c.suspect()
		return min(now.add(c.cfg.releaseEvery), limit)
	}
	cl := c.calls.get(l.key)
	cl.owner = mooring{l}
	r := wire.Request{
		Op: wire.OpAcquire, Flags: l.flags | wire.FlagRetry | wire.FlagTry, LeaseMS: l.askedMS(), Slots: l.slots, Ticket: l.ticket,
	}
	if n.send(cl, &r, now) != nil {
		c.calls.put(cl)
		return min(now.add(c.cfg.releaseEvery), limit)
	}
	return min(now.add(tryTime), limit)
}

// askedMS is the lease that was asked for last.
func (l *Lock) askedMS() uint32 {
	l.c.watch.mu.Lock()
	defer l.c.watch.mu.Unlock()
	return l.leaseMS
}

// finish takes the answer.
func (m mooring) finish(cl *call) {
	l, res := m.l, &cl.res
	c := l.c
	now := c.clock.now()
	switch {
	case res.err != nil:
		c.watch.set(&l.alarm, now.add(minRetry))
	case res.status == wire.StatusMoved:
		c.moved(res.conn, res.addr, res.node)
		c.watch.set(&l.alarm, now.add(minRetry))
	case res.status == wire.StatusGranted && res.token == l.token:
		l.moored(res.conn)
	case res.status == wire.StatusGranted: // the old grant had ended, and this is a new one
		c.owe(&debt{c: c, key: l.key, token: res.token}).due(now)
		l.lose(LostDenied)
	default:
		l.lose(LostDenied)
	}
}

// moored notes that the lock lives with n now.
func (l *Lock) moored(n *conn) {
	w := &l.c.watch
	w.mu.Lock()
	l.conn, l.adriftTo = n, 0
	w.mu.Unlock()
	if !n.alive() {
		l.setAdrift(n)
	}
}

// alive says whether n can be written to.
func (n *conn) alive() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why == nil
}
