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

func TestBehaviour6LostReplyThenNIsDone(t *testing.T) {
	for name, lose := range map[string]func(c *fakeserver.Conn, r *wire.Request){
		"cut after the release": func(c *fakeserver.Conn, r *wire.Request) {
			c.Mute()
			c.Answer(r)
			c.Cut()
		},
		"cut before the release":   func(c *fakeserver.Conn, r *wire.Request) { c.Cut() },
		"never answered, not done": func(c *fakeserver.Conn, r *wire.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(b *bed) {
				b.dial()
				l := b.acquire("jobs")
				b.nodes[0].SetHook(once(wire.OpRelease, lose))
				began := time.Now()
				b.release(l)
				b.took(began, 200*time.Millisecond, tryTime)
				b.is(l.Release(b.Context()), ErrReleased)
				b.free("jobs")
			})
		})
	}
}

func TestBehaviour6NAtTheFirstTryIsNotHeld(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs")
		b.table().End(l.Token(), "released") // without a push
		err := l.Release(b.Context())
		b.is(err, ErrNotHeld)
		var lost *LostError
		if !errors.As(err, &lost) || lost.Reason != LostDenied || lost.Key != "jobs" || lost.Token != l.Token() {
			b.Errorf("%#v", lost)
		}
		if n := len(b.nodes[0].Requests(wire.OpRelease)); n != 1 {
			b.Errorf("%d releases were sent", n)
		}
		b.is(l.Release(b.Context()), ErrReleased)
	})
}

// Redirects are definite: N after them is still the truth.
func TestBehaviour6NAfterARedirectIsNotHeld(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		l := b.acquire("jobs")
		b.table().End(l.Token(), "released")
		b.nodes[0].SetRole(wire.RoleStandby, "n2:7620", "n2")
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.is(l.Release(b.Context()), ErrNotHeld)
	})
}

// C-26.
func TestBehaviour6CancelledContextReleases(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		ctx, cancel := context.WithCancel(b.Context())
		l, err := b.c.Acquire(ctx, "jobs")
		if err != nil {
			b.Fatal(err)
		}
		cancel()
		if err := l.Release(ctx); err != nil {
			b.Error(err)
		}
		b.free("jobs")
	})
}

func TestBehaviour6OutageShorterThanTheRetries(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial(WithReconnect(time.Second))
		l := b.acquire("jobs", WithLease(time.Minute))
		b.outage(3 * time.Second)
		b.release(l)
		b.free("jobs")
	})
}

// outage makes n1 unreachable for d from now on.
func (b *bed) outage(d time.Duration) {
	b.net.Set("n1:7620", fakeserver.Refusing)
	b.nodes[0].CutAll()
	synctest.Wait()
	time.AfterFunc(d, func() { b.net.Set("n1:7620", fakeserver.Serving) })
}

// C-31.
func TestBehaviour6OutageLongerThanTheRetries(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(time.Minute))
		b.outage(8 * time.Second)
		began := time.Now()
		b.is(l.Release(b.Context()), ErrNoActive)
		b.took(began, 5*time.Second, 100*time.Millisecond)
		b.is(l.Err(), ErrReleased)

		time.Sleep(8 * time.Second)
		b.release(l) // the handle works again
		b.is(l.Release(b.Context()), ErrReleased)
		b.release(b.acquire("jobs"))
		b.free("jobs")
		if n := b.c.Status().Held; n != 0 {
			b.Errorf("%d held", n)
		}
	})
}

// One connection is a black hole: the other one is used within a second.
func TestBehaviour6BlackHole(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs")
		hole := -1
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
			if hole < 0 && r.Op == wire.OpRelease {
				hole = c.Index
			}
			return c.Index == hole
		})
		began := time.Now()
		b.release(l)
		b.took(began, tryTime, 100*time.Millisecond)
		b.free("jobs")
	})
}

func TestBehaviour6EveryRefusalIsReported(t *testing.T) {
	for _, code := range []wire.Code{wire.CodeNotAllowed, wire.CodeBadArgument, wire.CodeMismatch, wire.CodeInternal} {
		inBubble(t, 1, func(b *bed) {
			b.dial()
			l := b.acquire("jobs")
			b.nodes[0].SetHook(once(wire.OpRelease, func(c *fakeserver.Conn, r *wire.Request) {
				c.Reply(r, wire.Reply{Status: wire.StatusError, Code: code, Message: []byte("so there")})
			}))
			var se *ServerError
			if err := l.Release(b.Context()); !errors.As(err, &se) || se.Code != code || se.Message != "so there" {
				b.Errorf("error %v", err)
			}
			b.release(l)
		})
	}
}

func TestBehaviour6BusyServerIsAskedAgain(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs")
		n := 0
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
			if r.Op != wire.OpRelease || n == 3 {
				return false
			}
			n++
			c.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeLimit, Message: []byte("too many")})
			return true
		})
		began := time.Now()
		b.release(l)
		b.took(began, 600*time.Millisecond, time.Millisecond)
	})
}

// The options change what the tests above rely on.
func TestWithReleaseRetry(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial(WithReleaseRetry(time.Second, 50*time.Millisecond))
		l := b.acquire("jobs")
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
			if r.Op == wire.OpRelease {
				c.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeUnavailable, Message: []byte("no")})
			}
			return r.Op == wire.OpRelease
		})
		began := time.Now()
		if err := l.Release(b.Context()); err == nil {
			b.Error("released")
		}
		b.took(began, time.Second, 50*time.Millisecond)
		if n := len(b.nodes[0].Requests(wire.OpRelease)); n != 20 {
			b.Errorf("%d tries, want 20", n)
		}
	})
}
