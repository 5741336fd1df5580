package client

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

// Holders and waiters over whole failovers: nobody notices.

// The active dies; for so long there is none.
func TestFailover(t *testing.T) {
	for _, nodes := range []int{2, 3} {
		for _, gap := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second, 3 * time.Second} {
			t.Run(fmt.Sprintf("%d nodes, %v", nodes, gap), func(t *testing.T) {
				inBubble(t, nodes, func(b *bed) {
					b.dial()
					c := b.crowd()
					time.Sleep(1500 * time.Millisecond)
					b.crash(0)
					fresh := b.start(context.Background(), "fresh") // nobody serves now
					time.Sleep(gap)
					b.promote(1)
					promoted := time.Now()
					got := <-fresh
					if got.err != nil {
						b.Fatal(got.err)
					}
					b.took(promoted, 0, 300*time.Millisecond)
					b.release(got.l)
					if n := len(b.nodes[1].Requests(wire.OpAcquire)); n == 0 {
						b.Error("the new active was not asked")
					}
					time.Sleep(7 * time.Second)
					c.check()
				})
			})
		}
	}
}

// A release and an extension that meet the failover.
func TestFailoverMeetsReleaseAndExtend(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		one, other := b.acquire("one"), b.acquire("other")
		b.crash(0)
		released, extended := make(chan error, 1), make(chan error, 1)
		go func() { released <- one.Release(context.Background()) }()
		go func() { extended <- other.Extend(context.Background(), time.Minute) }()
		time.Sleep(2 * time.Second)
		b.promote(1)
		began := time.Now()
		if err := <-released; err != nil {
			b.Errorf("release: %v", err)
		}
		if err := <-extended; err != nil {
			b.Errorf("extend: %v", err)
		}
		b.took(began, 0, 300*time.Millisecond)
		b.release(other)
	})
}

// The standby that takes over is one that the client is not connected to: it
// has just been restarted.
func TestFailoverToANodeThatIsBeingReconnected(t *testing.T) {
	for range 20 { // its reconnects come at random times
		inBubble(t, 2, func(b *bed) {
			b.dial()
			c := b.crowd()
			b.restart(1, 1600*time.Millisecond) // longer than the first pause
			b.crash(0)
			b.promote(1)
			l, err := b.c.Acquire(context.Background(), "fresh")
			if err != nil {
				b.Fatal(err)
			}
			b.release(l)
			time.Sleep(7 * time.Second)
			c.check()
		})
	}
}

// The active is cut off rather than dead: no connection ends by itself. Those
// who wait or act find out in time, with the default settings.
func TestFailoverFromABlackHole(t *testing.T) {
	for _, quiet := range []time.Duration{0, time.Second, 1900 * time.Millisecond, 4 * time.Second} {
		inBubble(t, 2, func(b *bed) {
			b.dial()
			one, other := b.acquire("one", WithLease(time.Minute)), b.acquire("other", WithLease(time.Minute))
			first := b.acquire("queue", WithLease(time.Minute))
			waiting := b.start(context.Background(), "queue")
			time.Sleep(quiet)
			b.cutOff(0)
			released, extended := make(chan error, 1), make(chan error, 1)
			go func() { released <- one.Release(context.Background()) }()
			go func() { extended <- other.Extend(context.Background(), time.Minute) }()
			b.presumeDead(0, 1)
			if err := <-released; err != nil {
				b.Errorf("release: %v", err)
			}
			if err := <-extended; err != nil {
				b.Errorf("extend: %v", err)
			}
			time.Sleep(5 * time.Second) // after which a place is lost
			late := b.start(context.Background(), "queue")
			b.release(first)
			got := <-waiting
			if got.err != nil {
				b.Fatal(got.err)
			}
			if got.l.Token() != first.Token()+1 {
				b.Errorf("%v of quiet: it was granted out of turn", quiet)
			}
			b.release(got.l)
			b.release((<-late).l)
		})
	}
}

// Nobody but who releases is there to notice.
func TestReleaseOutOfABlackHole(t *testing.T) {
	for quiet := 10 * time.Second; quiet < 15*time.Second; quiet += 500 * time.Millisecond {
		inBubble(t, 2, func(b *bed) {
			b.dial()
			one, other := b.acquire("one", WithLease(time.Minute)), b.acquire("other", WithLease(time.Minute))
			time.Sleep(quiet)
			b.cutOff(0)
			released := make(chan error, 1)
			go func() { released <- one.Release(context.Background()) }()
			b.presumeDead(0, 1)
			if err := <-released; err != nil {
				b.Errorf("%v of quiet: release: %v", quiet, err)
			}
			b.release(other)
		})
	}
}

// Nobody but the automatic extension is there to notice.
func TestAutoExtendOutOfABlackHole(t *testing.T) {
	for quiet := 20 * time.Second; quiet < 25*time.Second; quiet += 250 * time.Millisecond {
		inBubble(t, 2, func(b *bed) {
			b.dial()
			l := b.acquire("jobs", WithLease(7500*time.Millisecond), WithAutoExtend())
			time.Sleep(quiet)
			b.cutOff(0)
			b.presumeDead(0, 1)
			time.Sleep(time.Minute)
			if l.Err() != nil || b.table().Holder("jobs") != l.Token() {
				b.Fatalf("%v of quiet: %v", quiet, l.Err())
			}
			b.release(l)
		})
	}
}

// Nobody but a waiter is there to notice.
func TestWaiterKeepsItsPlaceInABlackHole(t *testing.T) {
	for _, quiet := range []time.Duration{0, time.Second, 1900 * time.Millisecond, 4 * time.Second} {
		inBubble(t, 2, func(b *bed) {
			b.dial()
			b.table().Take("queue", time.Hour)
			b.start(b.Context(), "queue")
			time.Sleep(quiet)
			b.cutOff(0)
			b.presumeDead(0, 1)
			time.Sleep(fakeserver.Grace + time.Second)
			if n := b.table().Waiting("queue"); n != 1 {
				b.Errorf("%v of quiet: %d wait", quiet, n)
			}
			for _, r := range b.nodes[1].Requests(wire.OpAcquire) {
				if r.Flags&wire.FlagRetry == 0 {
					b.Errorf("asked anew: %v", r)
				}
			}
		})
	}
}

// Every node is gone for a moment, and one comes back.
func TestFailoverWithNobodyInReach(t *testing.T) {
	for range 20 {
		inBubble(t, 2, func(b *bed) {
			b.dial()
			b.crash(0)
			b.crash(1)
			fresh := b.start(context.Background(), "fresh")
			time.Sleep(2 * time.Second) // the first attempts to reconnect fail
			b.net.Set(b.addr(1), fakeserver.Serving)
			b.promote(1)
			if got := <-fresh; got.err != nil {
				b.Fatal(got.err)
			}
		})
	}
	inBubble(t, 2, func(b *bed) { // but it does not take for ever
		b.dial()
		b.crash(0)
		b.crash(1)
		began := time.Now()
		_, err := b.c.Acquire(context.Background(), "fresh")
		b.is(err, ErrNoActive)
		b.took(began, failoverTime, 0)
	})
}

// A standby that does not know yet who took over is not waited for: the next
// one is asked at once.
func TestFailoverAsksTheOthersAtOnce(t *testing.T) {
	for turn := range 2 { // whichever of the two is asked first
		inBubble(t, 3, func(b *bed) {
			b.dial()
			for i := range turn {
				b.acquire(fmt.Sprintf("before %d", i))
			}
			b.crash(0)
			synctest.Wait()
			b.nodes[2].SetRole(wire.RoleActive, "", "")
			began := time.Now()
			b.release(b.acquire("jobs"))
			b.took(began, 0, 0)
		})
	}
}

// A waiter whose nodes fail one after the other, each after it stood in line,
// goes on waiting.
func TestFailoverAgainAndAgain(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial(WithReconnect(100 * time.Millisecond))
		other := b.table().Take("jobs", time.Hour)
		waiting := b.start(context.Background(), "jobs")
		for range 10 {
			time.Sleep(400 * time.Millisecond)
			b.nodes[0].CutAll()
		}
		time.Sleep(time.Second)
		b.table().End(other, "released")
		got := <-waiting
		if got.err != nil {
			b.Fatal(got.err)
		}
		b.release(got.l)
	})
}

// A node that is named while it is being dialled already is not dialled out of
// turn when that connection ends, with all other clients at the same moment.
func TestNamedWhileItIsDialled(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.nodes[1].Latency = 100 * time.Millisecond
		b.c = b.client(b.addrs())
		synctest.Wait() // n1 is connected, n2 is not
		b.handOff(0, 1)
		b.release(b.acquire("jobs"))
		b.nodes[1].CutAll()
		synctest.Wait()
		if n := b.dialledAddr(b.addr(1)); n != 1 {
			b.Errorf("%d attempts to connect to it", n)
		}
	})
}

// Every node in turn is restarted, the active after a hand-off. A client that
// was told of one node only finds the others by what they say.
func TestRollingRestart(t *testing.T) {
	for _, n := range []struct{ nodes, told int }{{2, 2}, {3, 3}, {3, 1}} {
		t.Run(fmt.Sprintf("%d nodes, %d told", n.nodes, n.told), func(t *testing.T) {
			inBubble(t, n.nodes, func(b *bed) {
				b.onlyTo(n.told)
				c := b.crowd()
				turns := b.serveAlways()
				b.rollingRestart()
				b.checkServed(turns)
				c.check()
			})
		})
	}
}

func (b *bed) rollingRestart() {
	active, n := 0, len(b.nodes)
	for i := range 3 * n {
		node := i % n
		if node == active {
			active = (active + 1) % n
			b.handOff(node, active)
		}
		b.restart(node, 500*time.Millisecond)
		if i%2 == 1 { // else the next one is restarted at once
			time.Sleep(5 * time.Second)
		}
	}
}
