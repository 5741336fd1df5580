package client

import (
	"time"

	"holdfast/wire"
)

// extension is the owner of an automatic extension.
type extension struct {
	l       *Lock
	leaseMS uint32
}

// autoExtend sends an extension that nobody waits for. The watch comes again,
// in case it is not answered.
func (l *Lock) autoExtend(now instant) (again instant) {
	leaseMS, retry, ok := l.planExtension(now)
	again = min(now.add(retry), instant(l.until.Load()))
	if !ok {
		return again
	}
	c := l.c
	n := c.pick()
	if n == nil {
		c.suspect()
		l.endAutoTurn()
		return min(now.add(c.cfg.releaseEvery), again)
	}
	cl := c.calls.get(l.key)
	cl.owner = &extension{l: l, leaseMS: leaseMS}
	if n.send(cl, &wire.Request{Op: wire.OpExtend, Token: l.token, LeaseMS: leaseMS}, now) != nil {
		c.calls.put(cl)
		l.endAutoTurn()
	}
	return again
}

// planExtension says which lease to ask for and when to ask again if there is
// no answer. Not ok: the caller of Extend is at it.
func (l *Lock) planExtension(now instant) (leaseMS uint32, retry time.Duration, ok bool) {
	w := &l.c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	retry = min(max(l.lease/6, minRetry), tryTime)
	if l.extending != nil && !l.byItself {
		return 0, retry, false
	}
	if l.extending == nil {
		l.extending, l.byItself = make(chan struct{}), true
	}
	leaseMS = l.leaseMS
	if left := l.maxTill.sub(now); l.maxTill != 0 && left < l.lease {
		leaseMS = max(1, uint32((left+time.Millisecond-1)/time.Millisecond))
	}
	return leaseMS, retry, true
}

// minRetry keeps tiny leases from turning extensions into load.
const minRetry = 10 * time.Millisecond

func (l *Lock) endAutoTurn() {
	w := &l.c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.extending != nil && l.byItself {
		close(l.extending)
		l.extending, l.byItself = nil, false
	}
}

// finish takes the answer.
func (x *extension) finish(cl *call) {
	l, res := x.l, &cl.res
	done, _ := l.extended(res, cl.sent, x.leaseMS)
	l.endAutoTurn()
	if done {
		return
	}
	c := l.c
	again := c.clock.now()
	if res.err == nil {
		c.moved(res.conn, res.addr, res.node)
	}
	if res.err != errDropped {
		again = again.add(minRetry)
	}
	c.watch.set(&l.alarm, again)
}
