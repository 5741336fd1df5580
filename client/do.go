package client

import (
	"context"
	"errors"
	"slices"

	"holdfast/wire"
)

// Do runs fn while it holds the lock on key, and releases it afterwards, also
// if fn panics. The context of fn ends when ctx does or when the lock is lost:
// context.Cause tells which. The error is fn's, joined with that of the
// release: an ErrNotHeld says that fn was not covered to its end. fn may
// release the lock itself.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, l *Lock) error, opts ...AcquireOption) error {
	l, err := c.acquire(ctx, key, spec{patient: c.cfg.patient, parent: ctx}, opts)
	if err != nil {
		return err
	}
	return l.do(fn)
}

// do runs fn under l.
func (l *Lock) do(fn func(ctx context.Context, l *Lock) error) (err error) {
	ctx := l.Context()
	defer func() {
		if release := l.Release(ctx); release != nil && !errors.Is(release, ErrReleased) {
			err = errors.Join(err, release)
		}
	}()
	return fn(ctx, l)
}

// Lead runs fn while it holds the lock on key: of all who call Lead for it,
// one leads. It waits for as long as it takes, also while no node can be
// reached. The lock is extended automatically, without a longest hold unless
// WithMaxHold is given.
//
// The context of fn ends when ctx does or when the lock is lost; fn must then
// return soon, for somebody else may lead by now. If the lock was lost, Lead
// stands for election again, whatever fn has returned. Otherwise it releases
// the lock and returns what fn returned, or, if ctx has ended, at least its
// error. It also ends when an argument is wrong, when the client is closed or
// refused, and when WithWait has passed.
func (c *Client) Lead(ctx context.Context, key string, fn func(ctx context.Context, l *Lock) error, opts ...AcquireOption) error {
	t := c.newTrip(ctx)
	for {
		again, err := c.leadOnce(ctx, key, fn, opts)
		switch {
		case ctx.Err() != nil && err == nil:
			return failed("lead", key, "", contextCauses(ctx)...)
		case ctx.Err() != nil || !again:
			return err
		}
		c.cfg.log.Info("standing for election again", "key", key, "err", err)
		c.sleep(&t, nil, t.nextPause())
	}
}

// leadOnce is one election and, if it is won, one reign.
func (c *Client) leadOnce(ctx context.Context, key string, fn func(ctx context.Context, l *Lock) error, opts []AcquireOption) (again bool, err error) {
	l, err := c.acquire(ctx, key, spec{patient: true, auto: true, endless: true, parent: ctx}, opts)
	if err != nil {
		return passing(err) && !bounded(opts), err
	}
	err = l.do(fn)
	var lost *LostError
	return errors.As(err, &lost) && lost.Token == l.token && lost.Reason != LostClosed, err
}

// bounded says whether one of opts bounds the wait.
func bounded(opts []AcquireOption) bool {
	return slices.ContainsFunc(opts, func(o AcquireOption) bool { return o.kind == optionWait })
}

// passing says whether an acquire that failed with err may succeed later.
func passing(err error) bool {
	if errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrClosed) {
		return false
	}
	var se *ServerError
	if errors.As(err, &se) {
		return se.Code == wire.CodeLimit || se.Code == wire.CodeUnavailable
	}
	return errors.Is(err, ErrNoActive) || errors.Is(err, ErrNotAcquired)
}
