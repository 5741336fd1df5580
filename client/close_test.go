package client

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestCloseWithdrawsWaiters(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.table().Take("jobs", time.Hour)
		waiting := b.start(context.Background(), "jobs")
		began := time.Now()
		if err := b.c.Close(); err != nil {
			b.Error(err)
		}
		b.took(began, 0, 0)
		got := <-waiting
		b.is(got.err, ErrClosed)
		if n := b.table().Waiting("jobs"); n != 0 {
			b.Errorf("%d wait", n) // nor do they for the grace
		}
		b.is(b.c.Close(), ErrClosed)
	})
}

// A grant that crosses the Close is given back.
func TestCloseGivesBackWhatWon(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 50 * time.Millisecond
		b.dial()
		time.Sleep(time.Second)
		waiting := b.start(context.Background(), "jobs")
		b.c.Close()
		got := <-waiting
		b.is(got.err, ErrClosed)
		b.free("jobs")
	})
}

func TestCloseIsBounded(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("held")
		b.nodes[0].SetHook(func(*fakeserver.Conn, *wire.Request) bool { return true })
		waiting := b.start(context.Background(), "jobs")
		releasing := make(chan error, 1)
		go func() { releasing <- l.Release(context.Background()) }()
		synctest.Wait()
		began := time.Now()
		b.c.Close()
		b.took(began, closeTime, 0)
		got := <-waiting
		b.is(got.err, ErrClosed)
		b.is(<-releasing, ErrClosed)
	})
}

func TestCloseEndsHeldLocks(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs")
		ctx := l.Context()
		b.c.Close()
		if ctx.Err() == nil {
			b.Error("the context runs on")
		}
		b.is(l.Err(), ErrNotHeld, ErrClosed)
		b.is(l.Release(b.Context()), ErrNotHeld, ErrClosed)
		b.is(l.Extend(b.Context(), time.Minute), ErrNotHeld, ErrClosed)
		if b.table().Holder("jobs") != l.Token() {
			b.Error("the server's lease has ended")
		}
		for _, acquire := range []func(context.Context, string, ...AcquireOption) (*Lock, error){b.c.Acquire, b.c.TryAcquire} {
			_, err := acquire(b.Context(), "jobs")
			b.is(err, ErrClosed)
		}
		b.is(b.c.Ready(b.Context()), ErrClosed)
	})
}

// C-37: many clients, with and without a second address that is dead. The
// bubble fails if a goroutine is left; the server tells whether a connection is.
func TestCloseLeavesNothing(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.net.Set("dead:7620", fakeserver.Dropping)
		for i := range 200 {
			addrs := b.addrs()
			if i%2 == 0 {
				addrs = append(addrs, "dead:7620")
			}
			c := b.client(addrs)
			ctx, cancel := context.WithCancel(b.Context())
			l, err := c.Acquire(ctx, "jobs")
			if err != nil {
				b.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() { c.Acquire(ctx, "jobs") })
			synctest.Wait()
			cancel()
			wg.Wait()
			if err := l.Release(ctx); err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
		b.free("jobs")
		for _, c := range b.nodes[0].Conns() {
			if c.Alive() {
				b.Fatal("a connection stands")
			}
		}
	})
}

// Calls and Close from everywhere at once.
func TestCloseRaces(t *testing.T) {
	for range 50 {
		inBubble(t, 1, func(b *bed) {
			b.nodes[0].Latency = time.Millisecond
			b.dial()
			var wg sync.WaitGroup
			for i := range 30 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 200 * time.Microsecond)
					l, err := b.c.Acquire(context.Background(), "jobs", WithLease(time.Second))
					if err != nil {
						b.is(err, ErrClosed)
						return
					}
					l.Release(context.Background())
				})
			}
			time.Sleep(3 * time.Millisecond)
			b.c.Close()
			wg.Wait()
			if n := b.c.Status().Held; n != 0 {
				b.Errorf("%d held", n)
			}
		})
	}
}
