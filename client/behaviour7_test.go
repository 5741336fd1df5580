package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

// untilIs checks that Until is d after t, as exactly as milliseconds allow.
func (b *bed) untilIs(l *Lock, t time.Time, d time.Duration) {
	b.Helper()
	if got := l.Until().Sub(t); got > d || got < d-2*time.Millisecond {
		b.Errorf("until %v after, want %v", got, d)
	}
}

// lostAs checks that l is lost for that reason, in every way it can be told.
func (b *bed) lostAs(l *Lock, want Reason) {
	b.Helper()
	var lost *LostError
	if err := l.Err(); !errors.As(err, &lost) || lost.Reason != want || lost.Token != l.Token() || lost.Key != l.Key() {
		b.Errorf("Err() is %v, want reason %q", err, want)
	}
	if l.Context().Err() == nil || context.Cause(l.Context()) != error(lost) {
		b.Errorf("the context's cause is %v", context.Cause(l.Context()))
	}
	err := l.Release(b.Context())
	b.is(err, ErrNotHeld)
}

// C-38.
func TestBehaviour7ImmediateGrantCountsFromTheSending(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 400 * time.Millisecond // 800 ms there and back
		b.dial()
		time.Sleep(3 * time.Second)
		sent := time.Now()
		l := b.acquire("jobs", WithLease(2*time.Second))
		b.untilIs(l, sent, 2*time.Second)
		time.Sleep(time.Until(l.Until()) - time.Millisecond)
		if l.Err() != nil || l.Context().Err() != nil {
			b.Error("lost before Until")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if b.table().Holder("jobs") != l.Token() {
			b.Error("the server's lease ended before Until")
		}
		b.lostAs(l, LostExpired)
		time.Sleep(time.Second)
		b.free("jobs")
	})
}

// While it waits, the client keeps proving the connection; the grant counts
// from the last proof.
func TestBehaviour7GrantAfterWaitingCountsFromTheLastAnswer(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 10 * time.Millisecond
		b.dial(WithPing(time.Hour, 3*time.Second))
		time.Sleep(time.Second)
		other := b.table().Take("jobs", time.Hour)
		waiting := b.start(context.Background(), "jobs", WithLease(6*time.Second))
		time.Sleep(59*time.Second + 500*time.Millisecond)
		pings := b.nodes[0].Requests(wire.OpPing)
		if len(pings) < 29 || len(pings) > 31 {
			b.Errorf("%d pings in a minute, want one every 2 s", len(pings))
		}
		b.table().End(other, "released")
		got := <-waiting
		if got.err != nil {
			b.Fatal(got.err)
		}
		b.untilIs(got.l, pings[len(pings)-1].At, 6*time.Second)

		// Lost by the client's word, it is given back before the server's lease ends.
		l := got.l
		time.Sleep(time.Until(l.Until()))
		b.lostAs(l, LostExpired)
		b.free("jobs")
		if h := b.table().History(); h[1].How != "released" {
			b.Errorf("the grant was %s", h[1].How)
		}

		// With nobody waiting any more the pings go back to their own interval.
		time.Sleep(3 * time.Second)
		before := len(b.nodes[0].Requests(wire.OpPing))
		time.Sleep(time.Minute)
		if n := len(b.nodes[0].Requests(wire.OpPing)) - before; n > 0 {
			b.Errorf("%d pings in a minute with nothing to wait for", n)
		}
	})
}

// A repeated acquire is told what is left of the lease.
func TestBehaviour7WhatIsLeftOfTheLease(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		ticket := WithTicket([16]byte{7})
		first := b.acquire("jobs", WithLease(10*time.Second), ticket)
		time.Sleep(4 * time.Second)
		again := b.acquire("jobs", WithLease(10*time.Second), ticket)
		if first.Token() != again.Token() {
			b.Fatal("two grants")
		}
		b.untilIs(again, time.Now(), 6*time.Second)
	})
}

// C-32: the network is cut while the lock is held.
func TestBehaviour7LostWithoutAPacket(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		sent := time.Now()
		l := b.acquire("jobs", WithLease(5*time.Second))
		ctx := l.Context()
		b.outage(8 * time.Second)
		<-ctx.Done()
		b.took(sent, 4999*time.Millisecond, time.Millisecond)
		began := time.Now()
		b.lostAs(l, LostExpired)
		b.took(began, 0, 0) // a later release blocks nobody
		b.is(l.Extend(b.Context(), time.Minute), ErrNotHeld)
	})
}

func TestBehaviour7LostPush(t *testing.T) {
	for how, reason := range map[string]Reason{"forced": LostForced, "superseded": LostSuperseded} {
		inBubble(t, 1, func(b *bed) {
			b.dial()
			l := b.acquire("jobs")
			ctx := l.Context()
			b.table().End(l.Token(), how)
			synctest.Wait()
			if ctx.Err() == nil {
				b.Errorf("%s: nothing happened", how)
			}
			b.lostAs(l, reason)
		})
	}
}

// A push that is read together with the grant it is about.
func TestBehaviour7LostBeforeTheCallerRuns(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.nodes[0].SetHook(once(wire.OpAcquire, func(c *fakeserver.Conn, r *wire.Request) {
			buf := wire.AppendReply(nil, &wire.Reply{Op: 'A', Status: 'A', ID: r.ID, Key: r.Key, Token: 5, LeaseMS: 9000})
			buf = wire.AppendReply(buf, &wire.Reply{Op: 'L', Key: r.Key, Token: 5, Reason: wire.ReasonForced})
			c.Raw(buf)
		}))
		b.lostAs(b.acquire("jobs"), LostForced)
	})
}

// A stopped process: nothing of the client runs, and Err tells nevertheless.
func TestBehaviour7ErrLooksAtTheClock(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		stuck := make(chan struct{})
		b.dial(WithObserver(func(e Event) {
			if e.Kind == EventLost && e.Key == "first" {
				<-stuck // the goroutine that watches leases
			}
		}))
		b.acquire("first", WithLease(time.Second))
		l := b.acquire("second", WithLease(2*time.Second))
		for _, c := range b.nodes[0].Conns() {
			c.Mute() // no push tells
		}
		time.Sleep(2500 * time.Millisecond)
		if l.Context().Err() != nil {
			b.Error("the watch was not stopped: the test is worthless")
		}
		b.lostAs(l, LostExpired)
		close(stuck)
	})
}

// C-24: the grant is read when its lease is over already.
func TestBehaviour7GrantThatCameTooLate(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 600 * time.Millisecond
		b.dial()
		time.Sleep(2 * time.Second)
		l, err := b.c.Acquire(b.Context(), "jobs", WithLease(time.Second))
		if l != nil {
			b.Fatal("a lock that was over before it came")
		}
		b.is(err, ErrNotAcquired, ErrNotHeld)
		time.Sleep(time.Second)
		b.free("jobs")
	})
}

func TestBehaviour7ManyLeases(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		ends := make(chan time.Duration, 1000)
		began := time.Now()
		for i := range 1000 {
			lease := time.Duration(1+i*7919%1000) * 10 * time.Millisecond
			l := b.acquire(string(rune(0x4000+i)), WithLease(lease))
			context.AfterFunc(l.Context(), func() { ends <- time.Since(began) - lease })
			if i%3 == 0 {
				b.release(l)
			}
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := len(ends); n != 1000 {
			b.Errorf("%d contexts have ended", n)
		}
		if n := b.c.Status().Held; n != 0 {
			b.Errorf("%d held", n)
		}
		late := 0
		for range len(ends) {
			if d := <-ends; d > 0 {
				late++
			}
		}
		if late > 0 {
			b.Errorf("%d were told too late", late)
		}
	})
}
