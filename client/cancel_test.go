package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestCancelLeavesTheQueue(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.table().Take("jobs", time.Hour)
		ctx, cancel := context.WithCancel(b.Context())
		waiting := b.start(ctx, "jobs")
		cancel()
		got := <-waiting
		b.is(got.err, ErrNotAcquired, context.Canceled)
		synctest.Wait()
		if n := b.table().Waiting("jobs"); n != 0 {
			b.Errorf("%d wait", n)
		}
		if r := b.nodes[0].Requests(wire.OpCancel); len(r) != 1 {
			b.Errorf("cancels: %v", r)
		}
	})
}

// C-28: one error for each way in which a wait runs out.
func TestCancelErrors(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.table().Take("jobs", time.Hour)
		soon, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()

		_, err := b.c.Acquire(b.Context(), "jobs", WithWait(time.Second))
		b.is(err, ErrNotAcquired)
		_, err = b.c.Acquire(soon, "jobs")
		b.is(err, ErrNotAcquired, context.DeadlineExceeded)
		_, err = b.c.Acquire(soon, "jobs") // over before it begins
		b.is(err, ErrNotAcquired, context.DeadlineExceeded)
		both, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = b.c.Acquire(both, "jobs", WithWait(time.Second))
		if !errors.Is(err, ErrNotAcquired) { // and the context's, if it came first
			b.Error(err)
		}
		_, err = b.c.TryAcquire(b.Context(), "jobs")
		b.is(err, ErrNotAcquired)
	})
}

// The server's word that the wait is over comes before the context's end.
func TestCancelByTheServersClock(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.nodes[0].SetHook(once(wire.OpAcquire, func(c *fakeserver.Conn, r *wire.Request) {
			c.Reply(r, wire.Reply{Status: wire.StatusNotGranted})
		}))
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		_, err := b.c.Acquire(ctx, "jobs")
		b.is(err, ErrNotAcquired, context.DeadlineExceeded)
	})
}

// A node that never answers: WithWait ends the wait nevertheless, and the
// attempt is withdrawn over the other connection.
func TestCancelWithoutAnyAnswer(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		hole := -1
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
			if hole < 0 && r.Op == wire.OpAcquire {
				hole = c.Index
				c.Mute()
				return false // granted, and never heard of
			}
			return false
		})
		began := time.Now()
		_, err := b.c.Acquire(b.Context(), "jobs", WithWait(time.Second))
		b.is(err, ErrNotAcquired)
		b.took(began, time.Second+answerTime, time.Millisecond)
		if b.table().Holder("jobs") == 0 {
			b.Fatal("the test is worthless")
		}
		time.Sleep(tryTime)
		b.free("jobs")
	})
}

// C-27: cancelled at a random moment around the arrival of the grant, with
// connections that drop now and then. Whatever the outcome, nothing stays.
func TestCancelRaces(t *testing.T) {
	for _, cuts := range []bool{false, true} {
		t.Run(fmt.Sprintf("cuts=%v", cuts), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			inBubble(t, 1, func(b *bed) {
				b.nodes[0].Latency = 5 * time.Millisecond
				b.dial(WithReconnect(20 * time.Millisecond))
				rnd := rand.New(rand.NewPCG(seed, 0))
				var stop chan struct{}
				if cuts {
					stop = b.cutNowAndThen(rand.New(rand.NewPCG(seed, 1)))
				}
				count := b.races(rnd, 4000)
				if cuts {
					close(stop)
				}
				time.Sleep(6 * time.Second) // what was cut is settled within the release's retries
				b.free()
				b.Logf("granted %d, cancelled %d, other errors %d", count[0], count[1], count[2])
				if count[0] < 400 || count[1] < 400 {
					b.Error("the race was not one")
				}
				if n := b.c.Status().Counters.LeftToLeases; n > 0 {
					b.Errorf("%d were left to their leases", n)
				}
			})
		})
	}
}

// races runs n acquires, each cancelled at a random moment, a hundred at a time on twenty keys.
func (b *bed) races(rnd *rand.Rand, n int) (count [3]int) {
	var mu sync.Mutex
	for range n / 100 {
		var wg sync.WaitGroup
		for range 100 {
			key := fmt.Sprintf("key %d", rnd.IntN(20))
			after := time.Duration(rnd.Int64N(int64(60 * time.Millisecond)))
			hold := time.Duration(rnd.Int64N(int64(4 * time.Millisecond)))
			try := rnd.IntN(4) == 0
			wg.Go(func() {
				i := b.race(key, after, hold, try)
				mu.Lock()
				defer mu.Unlock()
				count[i]++
			})
		}
		wg.Wait()
	}
	return count
}

func (b *bed) race(key string, after, hold time.Duration, try bool) (outcome int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(after, cancel)
	defer timer.Stop()
	acquire := b.c.Acquire
	if try {
		acquire = b.c.TryAcquire
	}
	l, err := acquire(ctx, key)
	switch {
	case err == nil:
		time.Sleep(hold)
		if err := l.Release(ctx); err != nil {
			b.Errorf("release: %v", err)
		}
		return 0
	case errors.Is(err, context.Canceled):
		return 1
	case errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrNoActive):
		return 2
	}
	b.Errorf("acquire: %v", err)
	return 2
}

// cutNowAndThen cuts a random connection every 50 ms or so.
func (b *bed) cutNowAndThen(rnd *rand.Rand) (stop chan struct{}) {
	stop = make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rnd.Int64N(int64(100 * time.Millisecond)))):
			}
			conns := b.nodes[0].Conns()
			conns[len(conns)-1-rnd.IntN(min(2, len(conns)))].Cut()
		}
	}()
	return stop
}

// What a cancelled acquire leaves behind on a node that is gone is asked for
// at the next active, where it was replicated.
func TestCancelThenFailover(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		ctx, cancel := context.WithCancel(b.Context())
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
			if r.Op == wire.OpAcquire {
				c.Mute() // granted, and the reply is lost
			}
			return false
		})
		waiting := b.start(ctx, "jobs")
		cancel()
		<-waiting
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.nodes[0].SetRole(wire.RoleStandby, "n2:7620", "n2")
		b.nodes[0].CutAll()
		time.Sleep(time.Second)
		b.free("jobs")
	})
}
