package client

import (
	"context"
	"sync/atomic"
	"time"

	"holdfast/wire"
)

// Lock is a lock that was granted. It may be used by any number of goroutines.
type Lock struct {
	// Static.
	c       *Client
	key     string
	token   uint64
	flags   wire.Flags
	auto    bool
	slots   uint16
	ticket  wire.Ticket
	maxTill instant // the longest hold ends then; 0 = none
	parent  context.Context

	until atomic.Int64          // an instant
	ended atomic.Pointer[error] // nil while held

	// Guarded by Client.watch.mu, as is the alarm.
	alarm
	leaseMS    uint32        // as asked for last; 0 = the server's default
	lease      time.Duration // as granted last
	extendAt   instant       // when to extend it next; 0 = not by itself
	extendedAt instant       // sending of the last extension that was answered
	extending  chan struct{} // closed when the extension under way ends; nil = none is
	byItself   bool          // it is an automatic one
	conn       *conn         // that a bound lock lives with
	adriftTo   instant       // a bound lock without a connection is lost then; 0 = it has one
	ctx        context.Context
	cancel     context.CancelCauseFunc
	owed       bool // released in vain: the next Release tries again
	unsure     bool // a release has been sent whose outcome nobody knows
}

// granted makes the Lock of a grant.
func (c *Client) granted(a *acquisition, res *result) (*Lock, error) {
	sp := &a.spec
	until := res.base.add(milli(res.leaseMS))
	if res.heard >= until {
		d := a.debt()
		d.owes(res.token, res.heard)
		lost := &LostError{Key: a.key, Token: res.token, Reason: LostExpired}
		return nil, failed("acquire", a.key, "before the grant arrived", ErrNotAcquired, lost)
	}
	l := &Lock{
		c: c, key: a.key, token: res.token, flags: sp.flags, auto: sp.auto, slots: sp.slots, ticket: sp.ticket,
		parent: sp.parent, leaseMS: sp.leaseMS, lease: milli(res.leaseMS),
	}
	l.who = l
	if sp.maxHold != 0 {
		l.maxTill = res.heard.add(sp.maxHold)
		until = min(until, l.maxTill)
	}
	l.until.Store(int64(until))
	if l.isBound() {
		l.conn = res.conn
	}
	if sp.auto {
		l.extendAt = res.base.add(l.lease / 3)
	}
	c.count.grants.Add(1)
	c.emit(Event{Kind: EventGranted, Key: l.key, Token: l.token})
	if reason := c.watch.hold(l, l.nextAlarm(until)); reason != 0 {
		l.lose(reason)
	}
	if l.isBound() && !res.conn.alive() {
		l.setAdrift(res.conn) // it ended before the lock was registered
	}
	return l, nil
}

// isBound says whether the lock lives with its connection.
func (l *Lock) isBound() bool { return l.flags&wire.FlagBound != 0 }

// Key returns the key of the lock.
func (l *Lock) Key() string { return l.key }

// Token returns the fencing token: larger for each later grant of the key.
// Pass it to the resource that the lock protects, which refuses a smaller
// token than it has seen.
func (l *Lock) Token() uint64 { return l.token }

// Until returns until when the lock is surely held, if it is neither released
// nor taken away: by this machine's monotonic clock, never later than the
// server's own idea of the lease. An extension moves it.
func (l *Lock) Until() time.Time { return l.c.clock.time(instant(l.until.Load())) }

// Err returns nil while the lock is held, then ErrReleased or a *LostError.
// It looks at the clock itself: a process that was stopped beyond Until hears
// of it from the first call.
func (l *Lock) Err() error { return l.errAt(l.c.clock.now()) }

func (l *Lock) errAt(now instant) error {
	if ended := l.ended.Load(); ended != nil {
		return *ended
	}
	if int64(now) < l.until.Load() {
		return nil
	}
	l.expire()
	return *l.ended.Load()
}

// Context returns a context that ends when the lock is released or lost.
// context.Cause tells which: ErrReleased or a *LostError.
func (l *Lock) Context() context.Context {
	l.c.watch.mu.Lock()
	defer l.c.watch.mu.Unlock()
	if l.ctx == nil {
		parent := l.parent
		if parent == nil {
			parent = context.Background()
		}
		l.ctx, l.cancel = context.WithCancelCause(parent)
		if ended := l.ended.Load(); ended != nil {
			l.cancel(*ended)
		}
	}
	return l.ctx
}

// expire ends the lock because Until has passed.
func (l *Lock) expire() {
	if l.maxTill != 0 && l.until.Load() >= int64(l.maxTill) {
		if l.lose(LostMaxHold) { // the server's lease may run on
			l.debt().due(l.c.clock.now())
		}
		return
	}
	l.lose(LostExpired)
}

// lose ends the lock. It returns false if the lock has ended before.
func (l *Lock) lose(reason Reason) bool {
	err := error(&LostError{Key: l.key, Token: l.token, Reason: reason})
	if !l.end(&err) {
		return false
	}
	l.c.count.lost.Add(1)
	l.c.cfg.log.Warn("lock lost", "key", l.key, "token", l.token, "reason", reason)
	l.c.emit(Event{Kind: EventLost, Key: l.key, Token: l.token, Err: err})
	return true
}

// end makes err the lock's, if it had none, and tells its context.
func (l *Lock) end(err *error) bool {
	if !l.ended.CompareAndSwap(nil, err) {
		return false
	}
	w := &l.c.watch
	w.mu.Lock()
	w.dropLocked(l)
	cancel := l.cancel
	w.mu.Unlock()
	if cancel != nil {
		cancel(*err)
	}
	return true
}

// nextAlarm is when to look at the lock again. The caller holds watch.mu, or
// is the only one who knows the lock.
func (l *Lock) nextAlarm(until instant) instant {
	if l.extendAt != 0 && l.extendAt < until {
		return l.extendAt
	}
	return until
}

// ring looks after the lock: it is over, or to be extended, or adrift.
func (l *Lock) ring(now instant) (again instant) {
	if l.ended.Load() != nil {
		return 0
	}
	if until := instant(l.until.Load()); now >= until {
		l.expire()
		return 0
	}
	w := &l.c.watch
	w.mu.Lock()
	adriftTo, extend := l.adriftTo, l.extendAt != 0 && now >= l.extendAt
	w.mu.Unlock()
	if adriftTo != 0 {
		return l.moor(now, adriftTo)
	}
	if extend {
		return l.autoExtend(now)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.nextAlarm(instant(l.until.Load()))
}
