package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestExtend(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 50 * time.Millisecond
		b.dial()
		time.Sleep(time.Second)
		l := b.acquire("jobs", WithLease(2*time.Second))
		for _, lease := range []time.Duration{10 * time.Second, 3 * time.Second, time.Minute, 0} {
			sent := time.Now()
			if err := l.Extend(b.Context(), lease); err != nil {
				b.Fatal(err)
			}
			if lease == 0 {
				lease = 30 * time.Second // the server's default
			}
			b.untilIs(l, sent, lease)
		}
		time.Sleep(time.Until(l.Until()) - time.Millisecond)
		if l.Err() != nil {
			b.Error("lost before Until")
		}
		time.Sleep(time.Millisecond)
		b.lostAs(l, LostExpired)
	})
}

func TestExtendShorterThenLost(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(time.Hour))
		if err := l.Extend(b.Context(), time.Second); err != nil {
			b.Fatal(err)
		}
		ctx, began := l.Context(), time.Now()
		<-ctx.Done()
		b.took(began, time.Second, 0)
	})
}

// Whether a shorter lease has come to stand is not known until it is answered:
// meanwhile Until is right either way.
func TestExtendShorterUnanswered(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(time.Hour))
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
			c.Mute()
			return false
		})
		ctx, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond)
		defer cancel()
		sent := time.Now()
		b.is(l.Extend(ctx, 2*time.Second), context.DeadlineExceeded)
		b.untilIs(l, sent, 2*time.Second)
		time.Sleep(1500 * time.Millisecond)
		b.lostAs(l, LostExpired)
	})
}

// C-41: never a silent acquire with the old token.
func TestExtendAfterTheEnd(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(time.Minute))
		b.table().End(l.Token(), "released") // unnoticed
		b.table().End(b.table().Take("jobs", time.Minute), "released")
		b.is(l.Extend(b.Context(), time.Minute), ErrNotHeld)
		b.lostAs(l, LostDenied)
		if b.table().Holder("jobs") != 0 {
			b.Error("taken anew")
		}
		n := len(b.nodes[0].Requests())
		b.is(l.Extend(b.Context(), time.Minute), ErrNotHeld)
		if got := len(b.nodes[0].Requests()); got != n {
			b.Error("a lost lock was asked for")
		}

		l = b.acquire("jobs")
		b.release(l)
		b.is(l.Extend(b.Context(), time.Minute), ErrReleased)
	})
}

func TestExtendGoesOnElsewhere(t *testing.T) {
	for name, lose := range map[string]func(c *fakeserver.Conn, r *wire.Request){
		"cut":        func(c *fakeserver.Conn, r *wire.Request) { c.Cut() },
		"unanswered": func(c *fakeserver.Conn, r *wire.Request) {},
		"unavailable": func(c *fakeserver.Conn, r *wire.Request) {
			c.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeUnavailable, Message: []byte("no")})
		},
		"moved": func(c *fakeserver.Conn, r *wire.Request) {
			c.Reply(r, wire.Reply{Status: wire.StatusMoved, Addr: []byte("n1:7620"), Node: []byte("n1")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(b *bed) {
				b.dial()
				l := b.acquire("jobs", WithLease(5*time.Second))
				b.nodes[0].SetHook(once(wire.OpExtend, lose))
				began := time.Now()
				if err := l.Extend(b.Context(), time.Minute); err != nil {
					b.Fatal(err)
				}
				b.took(began, 0, tryTime)
				b.untilIs(l, time.Now(), time.Minute)
			})
		})
	}
}

func TestExtendEndsWithTheLock(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(3*time.Second))
		b.outage(time.Minute)
		began := time.Now()
		b.is(l.Extend(b.Context(), time.Minute), ErrNotHeld)
		b.took(began, 3*time.Second, time.Millisecond)
	})
}

func TestExtendArguments(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs")
		for _, lease := range []time.Duration{-1, longest + 1} {
			if err := l.Extend(b.Context(), lease); err == nil || l.Err() != nil {
				b.Errorf("lease %v: error %v", lease, err)
			}
		}
		b.nodes[0].SetHook(once(wire.OpExtend, func(c *fakeserver.Conn, r *wire.Request) {
			c.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeBadArgument, Message: []byte("lease: too long")})
		}))
		err := l.Extend(b.Context(), longest)
		if want := `extend "jobs": server error 4 (bad argument): lease: too long`; err == nil || err.Error() != want {
			b.Errorf("error %v, want %s", err, want)
		}
		if l.Err() != nil {
			b.Error(l.Err())
		}
	})
}

// Of two extensions at once one waits for the other.
func TestExtendTakesTurns(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(time.Minute))
		b.nodes[0].Latency = 100 * time.Millisecond
		errs := make(chan error, 2)
		for _, lease := range []time.Duration{time.Hour, 2 * time.Minute} {
			go func() { errs <- l.Extend(b.Context(), lease) }()
			synctest.Wait()
		}
		if n := len(b.nodes[0].Requests(wire.OpExtend)); n != 1 {
			b.Errorf("%d extensions are under way", n)
		}
		short, cancel := context.WithTimeout(b.Context(), time.Millisecond)
		defer cancel()
		b.is(l.Extend(short, time.Second), context.DeadlineExceeded)
		for range 2 {
			if err := <-errs; err != nil {
				b.Error(err)
			}
		}
		b.untilIs(l, time.Now().Add(-200*time.Millisecond), 2*time.Minute)
	})
}

func TestAutoExtend(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(6*time.Second), WithAutoExtend())
		time.Sleep(time.Hour - time.Second)
		if l.Err() != nil || b.table().Holder("jobs") != l.Token() {
			b.Fatal(l.Err())
		}
		extensions := b.nodes[0].Requests(wire.OpExtend)
		if n := len(extensions); n != 1799 {
			b.Errorf("%d extensions in an hour, want one every 2 s", n)
		}
		for _, r := range extensions {
			if r.LeaseMS != 6000 {
				b.Fatalf("extended by %d ms", r.LeaseMS)
			}
		}
		b.release(l)
		n := len(b.nodes[0].Requests(wire.OpExtend))
		time.Sleep(time.Minute)
		if got := len(b.nodes[0].Requests(wire.OpExtend)); got != n {
			b.Error("extended after the release")
		}
	})
}

// C-33: neither a failover nor an outage shorter than the lease costs the lock.
func TestAutoExtendThroughTrouble(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(6*time.Second), WithAutoExtend())
		for i := range 20 {
			active, standby := b.nodes[i%2], b.nodes[1-i%2]
			standby.SetRole(wire.RoleActive, "", "")
			if i%3 == 0 {
				active.Demote(standby.Node+":7620", standby.Node)
			} else {
				active.SetRole(wire.RoleStandby, standby.Node+":7620", standby.Node)
				active.CutAll()
			}
			time.Sleep(7 * time.Second)
			if l.Err() != nil {
				b.Fatalf("after change %d: %v", i, l.Err())
			}
		}
		b.release(l)
	})
}

func TestAutoExtendGivesUpAtUntil(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(6*time.Second), WithAutoExtend())
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool { return r.Op == wire.OpExtend })
		ctx, began := l.Context(), time.Now()
		<-ctx.Done()
		b.took(began, 6*time.Second, 0)
		if n := len(b.nodes[0].Requests(wire.OpExtend)); n < 4 || n > 6 {
			b.Errorf("%d tries in the last 4 s, want one a second", n)
		}
		b.lostAs(l, LostExpired)
	})
}

func TestAutoExtendHearsThatItIsOver(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(6*time.Second), WithAutoExtend())
		b.table().End(l.Token(), "released")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.lostAs(l, LostDenied)
	})
}

// C-40: a forgotten lock does not live for ever.
func TestWithMaxHold(t *testing.T) {
	for _, hold := range []time.Duration{defaultMaxHold, time.Minute, 10*time.Second + 1, time.Second} {
		inBubble(t, 1, func(b *bed) {
			b.dial()
			opts := []AcquireOption{WithLease(6 * time.Second), WithAutoExtend(), WithMaxHold(hold)}
			if hold == defaultMaxHold {
				opts = opts[:2]
			}
			began := time.Now()
			l := b.acquire("jobs", opts...)
			<-l.Context().Done()
			b.took(began, hold, 0)
			b.lostAs(l, LostMaxHold)
			b.free("jobs") // at once, not with its lease
		})
	}
}

// The caller's Extend and the automatic ones go together.
func TestAutoExtendAndExtend(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(6*time.Second), WithAutoExtend())
		for range 100 {
			if err := l.Extend(b.Context(), 9*time.Second); err != nil {
				b.Fatal(err)
			}
			time.Sleep(700 * time.Millisecond)
		}
		n := len(b.nodes[0].Requests(wire.OpExtend))
		if n != 100 {
			b.Errorf("%d extensions: the automatic ones were not needed", n)
		}
		time.Sleep(9 * time.Second)
		if got := len(b.nodes[0].Requests(wire.OpExtend)) - n; got != 3 {
			b.Errorf("%d automatic extensions in 9 s, want one every 3 s", got)
		}
		b.release(l)
	})
}

// The answer to an extension that was overtaken by a later, shorter one.
func TestExtendIgnoresOvertakenAnswers(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(6*time.Second), WithAutoExtend())
		var overtaken func()
		b.nodes[0].SetHook(once(wire.OpExtend, func(c *fakeserver.Conn, r *wire.Request) {
			req := *r
			overtaken = func() { c.Reply(&req, wire.Reply{Status: wire.StatusExtended, LeaseMS: 6000}) }
		}))
		time.Sleep(3500 * time.Millisecond) // the second try has been answered
		if err := l.Extend(b.Context(), 2*time.Second); err != nil {
			b.Fatal(err)
		}
		until := l.Until()
		overtaken()
		synctest.Wait()
		if !l.Until().Equal(until) {
			b.Errorf("Until moved by %v", l.Until().Sub(until))
		}
		b.release(l)
	})
}
