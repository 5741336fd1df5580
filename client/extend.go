package client

import (
	"context"
	"time"

	"holdfast/wire"
)

// Extend sets the lease to lease from now, longer or shorter; 0 = the server's
// default. It moves Until. It is tried until it is answered, ctx ends or the
// lock is lost; after an error of ctx, or an ErrNoActive, the lock may or may
// not have been extended, and Until says what is sure. A lock that has ended is
// never taken anew: then the error is ErrReleased or a *LostError.
func (l *Lock) Extend(ctx context.Context, lease time.Duration) error {
	leaseMS, err := milliseconds("lease", lease)
	if err != nil {
		return failed("extend", l.key, "", err)
	}
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.extend(ctx, leaseMS); err != nil {
		if lost := l.Err(); lost != nil {
			return lost
		}
		return failed("extend", l.key, "", err)
	}
	return nil
}

// takeTurn waits until no other extension of the lock is under way: of two
// that overlap nobody could tell which lease is the one that stands.
func (l *Lock) takeTurn(ctx context.Context) error {
	for {
		other := l.tryTurn()
		if other == nil {
			return nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return failed("extend", l.key, "", contextCauses(ctx)...)
		}
	}
}

// tryTurn begins an extension, or returns what is closed when the one under
// way ends.
func (l *Lock) tryTurn() (other chan struct{}) {
	w := &l.c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.extending == nil {
		l.extending = make(chan struct{})
		return nil
	}
	return l.extending
}

func (l *Lock) endTurn() {
	w := &l.c.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	close(l.extending)
	l.extending = nil
}

// extend tries until there is an answer.
func (l *Lock) extend(ctx context.Context, leaseMS uint32) error {
	c := l.c
	t := c.newTrip(ctx)
	t.patient = true
	for {
		t.until = instant(l.until.Load())
		n, err := c.route(&t)
		if err != nil {
			return withContext(ctx, err)
		}
		began := c.clock.now()
		l.lower(n, began, leaseMS)
		r := wire.Request{Op: wire.OpExtend, Token: l.token, LeaseMS: leaseMS}
		res, err := c.ask(n, l.key, &r, ctx.Done(), began, min(began.add(tryTime), t.until))
		if err != nil {
			return err
		}
		done, err := l.extended(&res, began, leaseMS)
		switch {
		case done:
			return err
		case ctx.Err() != nil:
			return withContext(ctx, nil)
		case l.Err() != nil:
			return l.Err()
		case res.err == nil:
			err = c.redirect(&t, &res)
		default:
			err = c.retryLater(&t, &res, began)
		}
		if err != nil {
			return withContext(ctx, err)
		}
	}
}

// lower makes sure that Until is right whether or not the shorter lease that is
// about to be asked for on n comes to stand.
func (l *Lock) lower(n *conn, now instant, leaseMS uint32) {
	if leaseMS == 0 {
		leaseMS = n.welcome.defaultLeaseMS
	}
	until := now.add(milli(leaseMS))
	w := &l.c.watch
	w.mu.Lock()
	wake := false
	if l.ended.Load() == nil && int64(until) < l.until.Load() {
		l.until.Store(int64(until))
		wake = w.setLocked(&l.alarm, until)
	}
	w.mu.Unlock()
	if wake {
		w.rouse()
	}
}

// extended acts on the answer to an extension sent at sent; done says that
// there need be no other try.
func (l *Lock) extended(res *result, sent instant, leaseMS uint32) (done bool, err error) {
	switch {
	case res.err != nil:
		return false, nil
	case res.status == wire.StatusNone:
		l.lose(LostDenied)
		return true, l.Err()
	case res.status == wire.StatusMoved:
		return false, nil
	}
	if !l.prolong(res, sent, leaseMS) {
		// It was lost here before the server heard of the extension.
		l.returnLost(l.Err())
		return true, l.Err()
	}
	l.c.count.extensions.Add(1)
	l.c.emit(Event{Kind: EventExtended, Key: l.key, Token: l.token})
	return true, nil
}

// prolong moves Until. It returns false if the lock has ended.
func (l *Lock) prolong(res *result, sent instant, leaseMS uint32) bool {
	lease := milli(res.leaseMS)
	until := sent.add(lease)
	w := &l.c.watch
	w.mu.Lock()
	if l.ended.Load() != nil {
		w.mu.Unlock()
		return false
	}
	wake := false
	if sent >= l.extendedAt { // else a later one has been answered before it, and its lease may be the one that stands
		l.extendedAt, l.leaseMS, l.lease = sent, leaseMS, lease
		if l.auto {
			l.extendAt = sent.add(lease / 3)
		}
		if l.maxTill != 0 && until >= l.maxTill {
			until, l.extendAt = l.maxTill, 0
		}
		l.until.Store(int64(until))
		wake = w.setLocked(&l.alarm, l.nextAlarm(until))
	}
	w.mu.Unlock()
	if wake {
		w.rouse()
	}
	if l.isBound() {
		l.moored(res.conn)
	}
	return true
}
