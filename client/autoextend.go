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
	plan := l.planExtension(now)
	again = min(now.add(plan.retry), instant(l.until.Load()))
	if plan.busy {
		return again
	}
	c := l.c
	n := c.pick()
	if n == nil {
		c.suspect()
		l.endAutoTurn()
		return min(now.add(c.cfg.releaseEvery), again)
	}
	if plan.repeat {
		n.doubt()
	}
	cl := c.calls.get(l.key)
	cl.owner = &extension{l: l, leaseMS: plan.leaseMS}
	if n.send(cl, &wire.Request{Op: wire.OpExtend, Token: l.token, LeaseMS: plan.leaseMS}, now) != nil {
		c.calls.put(cl)
		l.endAutoTurn()
	}
	return again
}

// extensionPlan says how to extend.
type extensionPlan struct {
	leaseMS uint32
	retry   time.Duration // when to ask again if there is no answer
	repeat  bool          // there was none to the last try
	busy    bool          // not at all: the caller of Extend is at it
}

func (l *Lock) planExtension(now instant) (p extensionPlan) {
	w := &l.c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	p.retry = min(max(l.lease/6, minRetry), tryTime)
	if p.busy = l.extending != nil && !l.byItself; p.busy {
		return p
	}
	if p.repeat = l.extending != nil; !p.repeat {
		l.extending, l.byItself = make(chan struct{}), true
	}
	p.leaseMS = l.leaseMS
	if left := l.maxTill.sub(now); l.maxTill != 0 && left < l.lease {
		p.leaseMS = max(1, uint32((left+time.Millisecond-1)/time.Millisecond))
	}
	return p
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
