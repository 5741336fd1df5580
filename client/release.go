package client

import (
	"context"

	"holdfast/wire"
)

// released is what Err returns after Release.
var released = error(ErrReleased)

// Release gives the lock back; the next in line gets it at once. It is retried
// for 5 s (WithReleaseRetry) while its outcome is unknown. A context that has
// ended, or ends meanwhile, does not cut it short: a lock is released above all
// when things go wrong.
//
// The lock counts as released from the call on, whatever comes of it. A
// *LostError, which is an ErrNotHeld, means that the lease had run out or the
// lock was taken away: the work was not covered. After an error that leaves the
// outcome unknown (ErrNoActive) Release may be called again; otherwise a second
// call is ErrReleased.
func (l *Lock) Release(_ context.Context) error {
	now := l.c.clock.now()
	if err := l.errAt(now); err != nil && err != ErrReleased {
		l.returnLost(err)
		return err
	}
	unsure := false
	if !l.end(&released) {
		var owed bool
		if unsure, owed = l.takeOwed(); !owed {
			return ErrReleased
		}
	}
	unsure, err := l.c.release(l.key, l.token, unsure, now)
	if err == nil {
		l.c.count.releases.Add(1)
		l.c.emit(Event{Kind: EventReleased, Key: l.key, Token: l.token})
		return nil
	}
	if lost, ok := err.(*LostError); ok {
		return lost
	}
	l.setOwed(unsure)
	return failed("release", l.key, "", err)
}

// takeOwed says whether a release was tried in vain, and forgets it.
func (l *Lock) takeOwed() (unsure, owed bool) {
	l.c.watch.mu.Lock()
	defer l.c.watch.mu.Unlock()
	owed, l.owed = l.owed, false
	return l.unsure, owed
}

func (l *Lock) setOwed(unsure bool) {
	l.c.watch.mu.Lock()
	defer l.c.watch.mu.Unlock()
	l.owed, l.unsure = true, unsure
}

// returnLost gives back what the client counts as lost but the server may
// hold for a little longer: its lease ends later than Until.
func (l *Lock) returnLost(err error) {
	lost, ok := err.(*LostError)
	if !ok || lost.Reason != LostExpired || l.c.closing.Load() {
		return
	}
	w := &l.c.watch
	w.mu.Lock()
	first := !l.unsure
	l.unsure = true
	w.mu.Unlock()
	if first {
		l.debt().due(l.c.clock.now())
	}
}

// release releases token. unsure says, before and after, whether a release may
// have been done of which nobody has heard: then N means that it was.
func (c *Client) release(key string, token uint64, unsure bool, now instant) (bool, error) {
	t := c.newTrip(context.Background())
	t.patient = true
	t.until = now.add(c.cfg.releaseFor)
	for {
		n, err := c.route(&t)
		if err != nil {
			return unsure, err
		}
		limit := min(now.add(tryTime), t.until)
		res, err := c.ask(n, key, &wire.Request{Op: wire.OpRelease, Token: token}, nil, now, limit)
		switch {
		case err != nil:
			return unsure, err
		case res.err != nil:
			unsure = unsure || res.err == errDropped || res.err == errLate
			err = c.retryLater(&t, &res, now)
		case res.status == wire.StatusReleased:
			return unsure, nil
		case res.status == wire.StatusNone && unsure:
			return unsure, nil
		case res.status == wire.StatusNone:
			return unsure, &LostError{Key: key, Token: token, Reason: LostDenied}
		case res.status == wire.StatusMoved:
			err = c.redirect(&t, &res)
		}
		if err != nil {
			return unsure, err
		}
		now = c.clock.now()
	}
}

// retryLater waits until the next try is due, or says why there is none.
func (c *Client) retryLater(t *trip, res *result, began instant) error {
	if se, ok := res.err.(*ServerError); ok && se.Code != wire.CodeUnavailable && se.Code != wire.CodeLimit {
		return se
	}
	if res.err == ErrClosed {
		return ErrClosed
	}
	c.count.retries.Add(1)
	rest := began.add(c.cfg.releaseEvery).sub(c.clock.now())
	if rest > 0 && c.sleep(t, nil, rest) == ended {
		return c.noActive()
	}
	return nil
}

// ask sends r on n and waits for the answer: until stop is closed or limit has
// come, which is errLate. Its error is ErrClosed.
func (c *Client) ask(n *conn, key string, r *wire.Request, stop <-chan struct{}, now, limit instant) (result, error) {
	cl := c.calls.get(key)
	cl.limit = limit
	if err := n.send(cl, r, now); err != nil {
		c.calls.put(cl)
		return c.unsent(n, err)
	}
	if !cl.wait(stop, 0) && n.withdraw(cl, ignore{}, now) {
		if c.closing.Load() {
			return result{}, ErrClosed
		}
		n.doubt()
		return result{conn: n, err: errLate}, nil
	}
	res := cl.res
	c.calls.put(cl)
	return res, nil
}
