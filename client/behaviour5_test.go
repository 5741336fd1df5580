package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

// once is a hook that does something with the first request of an op.
func once(op wire.Op, do func(c *fakeserver.Conn, r *wire.Request)) func(c *fakeserver.Conn, r *wire.Request) bool {
	done := false
	return func(c *fakeserver.Conn, r *wire.Request) bool {
		if r.Op != op || done {
			return false
		}
		done = true
		do(c, r)
		return true
	}
}

// C-30: the connection is cut at every point of an acquire. The same ticket is
// sent again, marked as a repeat; there is one grant, and it is given back.
func TestBehaviour5CutMidAcquire(t *testing.T) {
	cuts := map[string]func(c *fakeserver.Conn, r *wire.Request){
		"before the node has read it": func(c *fakeserver.Conn, r *wire.Request) { c.Cut() },
		"after the grant, before its reply": func(c *fakeserver.Conn, r *wire.Request) {
			c.Mute()
			c.Answer(r)
			c.Cut()
		},
		"half of the reply is written": func(c *fakeserver.Conn, r *wire.Request) {
			c.Mute()
			c.Answer(r)
			c.Raw(wire.AppendReply(nil, &wire.Reply{Op: 'A', Status: 'A', ID: r.ID, Key: r.Key, Token: 1, LeaseMS: 30000})[:20])
			c.Cut()
		},
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(b *bed) {
				b.dial()
				b.nodes[0].SetHook(once(wire.OpAcquire, cut))
				began := time.Now()
				l := b.acquire("jobs")
				b.took(began, 0, time.Second)
				if l.Token() != 1 {
					b.Errorf("token %d: a second grant", l.Token())
				}
				b.checkRepeats(2)
				b.release(l)
				b.free("jobs")
			})
		})
	}
}

// checkRepeats fails unless n acquires came, all with one ticket, and all but the first marked as repeats.
func (b *bed) checkRepeats(n int) {
	b.Helper()
	asked := b.nodes[0].Requests(wire.OpAcquire)
	if len(asked) != n {
		b.Fatalf("%d acquires, want %d", len(asked), n)
	}
	for i, r := range asked {
		if r.Ticket.IsZero() || r.Ticket != asked[0].Ticket {
			b.Errorf("acquire %d has ticket %x, the first %x", i, r.Ticket, asked[0].Ticket)
		}
		if repeat := r.Flags&wire.FlagRetry != 0; repeat != (i > 0) {
			b.Errorf("acquire %d: RETRY is %v", i, repeat)
		}
	}
}

func TestBehaviour5CutWhileItWaits(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		other := b.table().Take("jobs", time.Hour)
		first := b.start(context.Background(), "jobs")
		second := b.start(context.Background(), "jobs")
		time.Sleep(time.Minute)
		for range 3 { // the connections come back, the places were never lost
			b.nodes[0].CutAll()
			time.Sleep(3500 * time.Millisecond)
		}
		if n := b.table().Waiting("jobs"); n != 2 {
			b.Fatalf("%d wait", n)
		}
		b.table().End(other, "released")
		one := <-first
		if one.err != nil || one.l.Token() != other+1 {
			b.Fatalf("%+v", one)
		}
		b.release(one.l)
		two := <-second
		b.release(two.l)
		b.free("jobs")
	})
}

func TestBehaviour5WaitDeadlineStaysTheOriginalOne(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.table().Take("jobs", time.Hour)
		began := time.Now()
		waiting := b.start(context.Background(), "jobs", WithWait(10*time.Second))
		time.Sleep(7*time.Second + 300*time.Microsecond)
		b.nodes[0].Conns()[b.nodes[0].Requests(wire.OpAcquire)[0].Conn].Cut()
		got := <-waiting
		b.is(got.err, ErrNotAcquired)
		b.took(began, 10*time.Second, 2*time.Millisecond)
		asked := b.nodes[0].Requests(wire.OpAcquire)
		if len(asked) != 2 || asked[0].WaitMS != 10_000 || asked[1].WaitMS != 2_980 { // after dropPause
			b.Errorf("waits sent: %v", asked)
		}
	})
}

// What is left of a wait is rounded up: 0 would mean without bound.
func TestBehaviour5WaitIsNeverZeroByRounding(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.table().Take("jobs", time.Hour)
		for _, wait := range []time.Duration{1, time.Microsecond, time.Millisecond, 1001 * time.Microsecond} {
			_, err := b.c.Acquire(b.Context(), "jobs", WithWait(wait))
			b.is(err, ErrNotAcquired)
			ctx, cancel := context.WithTimeout(b.Context(), wait)
			_, err = b.c.Acquire(ctx, "jobs")
			b.is(err, ErrNotAcquired, context.DeadlineExceeded)
			cancel()
		}
		for _, r := range b.nodes[0].Requests(wire.OpAcquire) {
			if r.WaitMS != 1 && r.WaitMS != 2 {
				b.Errorf("wait_ms %d", r.WaitMS)
			}
		}
	})
}

// A node that cuts every acquire: as many tries as connections, then an error.
func TestBehaviour5ErrorAfterAsManyTriesAsConnections(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			inBubble(t, nodes, func(b *bed) {
				asked := 0
				for _, s := range b.nodes {
					s.SetRole(wire.RoleActive, "", "")
					s.SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
						if r.Op == wire.OpAcquire {
							asked++
							c.Cut()
							return true
						}
						return false
					})
				}
				b.dial()
				_, err := b.c.Acquire(b.Context(), "jobs")
				b.is(err, ErrNoActive)
				if want := max(2, nodes); asked != want {
					b.Errorf("%d tries, want %d", asked, want)
				}
				if !strings.Contains(err.Error(), ":7620: read: ") {
					b.Errorf("%q does not list the nodes", err)
				}
			})
		})
	}
}

// C-29: every node is down, in each of three ways.
func TestBehaviour5AllNodesDown(t *testing.T) {
	for name, mode := range map[string]fakeserver.Mode{
		"refusing": fakeserver.Refusing, "dropping": fakeserver.Dropping, "deaf": fakeserver.Deaf,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(b *bed) {
				for _, addr := range b.addrs() {
					b.net.Set(addr, mode)
				}
				b.dial()
				for _, acquire := range []func(context.Context, string, ...AcquireOption) (*Lock, error){b.c.Acquire, b.c.TryAcquire} {
					ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
					began := time.Now()
					_, err := acquire(ctx, "jobs")
					if d := time.Since(began); d > 2100*time.Millisecond {
						b.Errorf("took %v", d)
					}
					if !errors.Is(err, ErrNoActive) || mode != fakeserver.Refusing && !errors.Is(err, context.DeadlineExceeded) {
						b.Errorf("error %v", err) // a refusal may be known sooner
					}
					for _, addr := range b.addrs() {
						if !strings.Contains(err.Error(), addr+": ") {
							b.Errorf("%q does not list %s", err, addr)
						}
					}
					cancel()
				}
				// Without a deadline it does not take for ever either.
				began := time.Now()
				_, err := b.c.TryAcquire(context.Background(), "jobs")
				b.is(err, ErrNoActive)
				b.took(began, 0, 12*time.Second)
			})
		})
	}
}

func TestBehaviour5PatienceTriesUntilTheContextEnds(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.net.Set("n1:7620", fakeserver.Refusing)
		b.dial(WithPatience())
		waiting := b.start(context.Background(), "jobs")
		time.Sleep(time.Hour)
		b.net.Set("n1:7620", fakeserver.Serving)
		got := <-waiting
		if got.err != nil {
			b.Fatal(got.err)
		}
		b.release(got.l)

		b.net.Set("n1:7620", fakeserver.Refusing)
		b.nodes[0].CutAll()
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(b.Context())
		waiting = b.start(ctx, "jobs")
		time.Sleep(time.Hour)
		why := fmt.Errorf("the shift is over")
		cancel(why)
		got = <-waiting
		b.is(got.err, ErrNoActive, context.Canceled)
		if !strings.Contains(got.err.Error(), why.Error()) {
			b.Errorf("%q does not tell the cause", got.err)
		}
		// Only where the wait has no bound.
		_, err := b.c.Acquire(b.Context(), "jobs", WithWait(time.Hour))
		b.is(err, ErrNoActive)
	})
}

// A short outage of a single node is waited out.
func TestBehaviour5WaitsForTheFirstConnection(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 300 * time.Millisecond
		b.c = b.client(b.addrs())
		l, err := b.c.TryAcquire(b.Context(), "jobs") // before any connection stands
		if err != nil {
			b.Fatal(err)
		}
		b.nodes[0].CutAll()
		synctest.Wait()
		b.release(l)
		b.free()
	})
}

// C-69: a client meets its own old hold after a failover.
func TestBehaviour5OwnOldHold(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		ticket := WithTicket([16]byte{1, 2, 3})
		old := b.acquire("jobs", ticket, WithLease(10*time.Second))
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.nodes[0].Demote("n2:7620", "n2")
		synctest.Wait()
		again := b.acquire("jobs", ticket)
		if again.Token() != old.Token() {
			b.Errorf("token %d, then %d", old.Token(), again.Token())
		}
		began := time.Now()
		other := b.acquire("jobs") // a new attempt waits for the lease
		b.took(began, 10*time.Second, 100*time.Millisecond)
		b.is(old.Err(), ErrNotHeld)
		b.release(other)
	})
}
