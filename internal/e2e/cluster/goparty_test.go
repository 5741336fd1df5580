//go:build linux

package cluster

import (
	"context"
	"errors"
	"time"

	"holdfast/client"
)

// goParty is the Go client, with its own idea of failovers.
type goParty struct {
	h    *history
	name string
	c    *client.Client
}

func newGo(h *history, s *set, name string) (*goParty, error) {
	c, err := client.New(s.addrs(), client.WithOwner(name), client.WithDialer(s.dial))
	return &goParty{h, name, c}, err
}

func (p *goParty) close() { p.c.Close() }

func (p *goParty) acquire(ctx context.Context, key string, lease time.Duration) (*attempt, hold, error) {
	a := &attempt{client: p.name, key: key, lease: lease, ticket: true, asked: p.h.now()}
	l, err := p.c.Acquire(ctx, key, client.WithLease(lease))
	if err != nil {
		return nil, nil, err
	}
	a.granted, a.token = p.h.now(), l.Token()
	return a, goHold{l}, nil
}

type goHold struct{ l *client.Lock }

func (l goHold) release(ctx context.Context) (holds, repeated bool, err error) {
	err = l.l.Release(ctx)
	switch {
	case err == nil:
		return true, false, nil
	case errors.Is(err, client.ErrNotHeld):
		return false, false, nil
	}
	return false, false, err
}

func (l goHold) extend(ctx context.Context, lease time.Duration) (holds, repeated bool, err error) {
	err = l.l.Extend(ctx, lease)
	switch {
	case err == nil:
		return true, false, nil
	case errors.Is(err, client.ErrNotHeld):
		return false, false, nil
	}
	return false, false, err
}
