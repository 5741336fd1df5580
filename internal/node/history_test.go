package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// toTokenTime brings a bubble's clock, which starts in 2000, to where tokens are.
func toTokenTime() { time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) }

// Each number of a sample is moved by what it is named after, and by that
// second's only.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toTokenTime()
		n := start(t, nil)
		h := node.NewHistory(n)
		ctx := t.Context()
		go h.Run(ctx)
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)

		a, b := new(box), new(box)
		holder, waiter := n.Open(locks.Origin{Owner: "a"}, a), n.Open(locks.Origin{Owner: "b"}, b)
		defer holder.Close()
		defer waiter.Close()
		acquire := func(s *node.Session, key string, lease, wait time.Duration) {
			s.Do([]locks.Command{{Op: locks.OpAcquire, Key: []byte(key), Lease: lease, Wait: wait}})
		}
		acquire(holder, "k", time.Minute, 0)
		token := a.token(t)
		acquire(waiter, "k", time.Minute, 0)
		time.Sleep(500 * time.Millisecond)
		holder.Do([]locks.Command{{Op: locks.OpRelease, Key: []byte("k"), Token: token}})
		time.Sleep(time.Second)
		acquire(holder, "short", 100*time.Millisecond, 0)
		acquire(holder, "k", time.Minute, 200*time.Millisecond)
		time.Sleep(time.Second)

		got := h.Samples()
		if len(got) != 2 {
			t.Fatalf("%d samples", len(got))
		}
		first, second := got[0], got[1]
		if first.Grants != 2 || first.Releases != 1 || first.Held != 1 || first.Waiting != 0 || first.Role != node.Active {
			t.Errorf("first second: %+v", first)
		}
		if first.WaitP50 != 0 || first.WaitP99 < 500*time.Millisecond || first.WaitP99 > 650*time.Millisecond {
			t.Errorf("half waited 500 ms: p50 %v, p99 %v", first.WaitP50, first.WaitP99)
		}
		if second.Grants != 1 || second.Releases != 0 || second.Timeouts != 1 || second.Expiries != 1 || second.WaitP99 != 0 {
			t.Errorf("second second: %+v", second)
		}
		if d := second.At.Sub(first.At); d != time.Second {
			t.Errorf("samples are %v apart", d)
		}
	})
}

// The ring holds ten minutes, oldest first.
func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toTokenTime()
		h := node.NewHistory(start(t, nil))
		go h.Run(t.Context())
		time.Sleep(15*time.Minute + 100*time.Millisecond)
		got := h.Samples()
		if len(got) != 600 || got[599].At.Sub(got[0].At) != 599*time.Second || time.Since(got[599].At) > time.Second {
			t.Errorf("%d samples from %v to %v", len(got), got[0].At, got[len(got)-1].At)
		}
	})
}

// Sessions are listed with where they come from for as long as they are open.
func TestClients(t *testing.T) {
	n := start(t, nil)
	one := n.Open(locks.Origin{Owner: "ci", Remote: "10.0.0.1:1", Transport: "native"}, new(box))
	two := n.Open(locks.Origin{Owner: "cron"}, new(box))
	two.Close()
	got := n.Clients()
	if len(got) != 1 || got[0].Session != one.ID() || got[0].Origin.Owner != "ci" || got[0].Since.IsZero() {
		t.Errorf("got %+v", got)
	}
	one.Close()
}
