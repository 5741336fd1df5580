package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

var errWork = errors.New("the work failed")

func TestDo(t *testing.T) {
	for _, want := range []error{nil, errWork} {
		inBubble(t, 1, func(b *bed) {
			b.dial()
			err := b.c.Do(b.Context(), "jobs", func(ctx context.Context, l *Lock) error {
				if l.Err() != nil || ctx.Err() != nil || b.table().Holder("jobs") != l.Token() {
					b.Error("not held")
				}
				return want
			})
			if err != want {
				b.Errorf("error %v, want %v", err, want)
			}
			b.free("jobs")
		})
	}
}

func TestDoLost(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		err := b.c.Do(b.Context(), "jobs", func(ctx context.Context, l *Lock) error {
			<-ctx.Done()
			b.is(context.Cause(ctx), ErrNotHeld)
			return errWork
		}, WithLease(time.Second))
		b.is(err, ErrNotHeld)
		if !errors.Is(err, errWork) {
			b.Errorf("%v does not tell what fn returned", err)
		}
	})
}

func TestDoContext(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		type name struct{}
		ctx, cancel := context.WithCancel(context.WithValue(b.Context(), name{}, "x"))
		err := b.c.Do(ctx, "jobs", func(ctx context.Context, l *Lock) error {
			if ctx.Value(name{}) != "x" {
				b.Error("fn does not get the caller's values")
			}
			cancel()
			return ctx.Err()
		})
		b.is(err, context.Canceled)
		b.free("jobs")
		b.is(b.c.Do(ctx, "jobs", nil), ErrNotAcquired, context.Canceled)
	})
}

func TestDoReleasesOnPanic(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		func() {
			defer func() {
				if recover() == nil {
					b.Error("the panic was swallowed")
				}
			}()
			b.c.Do(b.Context(), "jobs", func(context.Context, *Lock) error { panic("!") })
		}()
		b.free("jobs")
	})
}

func TestDoThatReleasesItself(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		if err := b.c.Do(b.Context(), "jobs", func(ctx context.Context, l *Lock) error { return l.Release(ctx) }); err != nil {
			b.Error(err)
		}
	})
}

func TestLeadElectsOne(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		ctx, cancel := context.WithCancel(b.Context())
		var leading, reigns atomic.Int32
		const candidates = 5
		done := make(chan error, candidates)
		var clients []*Client
		for range candidates {
			c := b.client(b.addrs())
			clients = append(clients, c)
			go func() {
				done <- c.Lead(ctx, "boss", func(ctx context.Context, l *Lock) error {
					leading.Add(1)
					reigns.Add(1)
					<-ctx.Done()
					leading.Add(-1)
					return ctx.Err()
				}, WithLease(6*time.Second))
			}()
		}
		for range 10 { // the reign goes on by itself, and passes on when it ends
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := leading.Load(); n != 1 {
				b.Fatalf("%d lead", n)
			}
			b.table().End(b.table().Holder("boss"), "forced")
		}
		time.Sleep(time.Second)
		cancel()
		for range candidates {
			if err := <-done; !errors.Is(err, context.Canceled) {
				b.Errorf("error %v", err)
			}
		}
		if n := reigns.Load(); n < 11 { // the last leader's release may have made another
			b.Errorf("%d reigns", n)
		}
		for _, c := range clients {
			c.Close()
		}
		b.free("boss")
	})
}

func TestLeadEnds(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		for _, want := range []error{nil, errWork} {
			if err := b.c.Lead(b.Context(), "boss", func(context.Context, *Lock) error { return want }); err != want {
				b.Errorf("error %v, want %v", err, want)
			}
		}
		b.free("boss")
	})
}

// After a loss it stands again, whatever fn has returned.
func TestLeadStandsAgainAfterALoss(t *testing.T) {
	for _, result := range []error{nil, errWork} {
		inBubble(t, 1, func(b *bed) {
			b.dial()
			reigns := 0
			err := b.c.Lead(b.Context(), "boss", func(ctx context.Context, l *Lock) error {
				if reigns++; reigns == 3 {
					return nil
				}
				b.table().End(l.Token(), "superseded")
				<-ctx.Done()
				return result
			})
			if err != nil || reigns != 3 {
				b.Errorf("%d reigns, error %v", reigns, err)
			}
		})
	}
}

func TestLeadOutlivesAnOutage(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.outage(time.Hour)
		began := time.Now()
		err := b.c.Lead(b.Context(), "boss", func(context.Context, *Lock) error { return nil })
		if err != nil {
			b.Error(err)
		}
		b.took(began, time.Hour, 4*time.Second)
	})
}

func TestLeadGivesUp(t *testing.T) {
	fn := func(context.Context, *Lock) error { panic("leads") }
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.table().Take("boss", time.Hour)
		b.is(b.c.Lead(b.Context(), "boss", fn, WithWait(time.Minute)), ErrNotAcquired)
		if err := b.c.Lead(b.Context(), "", fn); err == nil {
			b.Error("no key, no error")
		}
		b.nodes[0].SetHook(refuse(wire.CodeLimit, 3)) // passes
		waiting := make(chan error, 1)
		go func() { waiting <- b.c.Lead(context.Background(), "boss", fn) }()
		time.Sleep(3 * time.Second)
		if n := b.table().Waiting("boss"); n != 1 {
			b.Errorf("%d wait", n)
		}
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool { return false })
		b.c.Close()
		b.is(<-waiting, ErrClosed)
	})
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.nodes[0].SetHook(refuse(wire.CodeNotAllowed, 1))
		b.is(b.c.Lead(b.Context(), "boss", fn), ErrUnauthorized)
	})
}
