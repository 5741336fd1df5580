package client

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

// dialledAddr counts the attempts to connect to addr.
func (b *bed) dialledAddr(addr string) (n int) {
	for _, d := range b.net.Dials() {
		if d.Addr == addr {
			n++
		}
	}
	return n
}

// onlyTo makes a client that is told of the first n nodes only.
func (b *bed) onlyTo(n int, opts ...Option) *Client {
	b.Helper()
	b.c = b.client(b.addrs()[:n], opts...)
	synctest.Wait()
	return b.c
}

// C-35: the active is demoted, with a waiter and idle connections.
func TestBehaviour4FollowsTheActive(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		b.dial()
		held := b.acquire("jobs")
		var waiters []chan outcome
		for range 3 {
			waiters = append(waiters, b.start(context.Background(), "jobs"))
		}
		b.nodes[2].SetRole(wire.RoleActive, "", "")
		b.nodes[0].Demote("n3:7620", "n3")
		synctest.Wait()

		b.release(held) // on the new active
		last := held
		for i, ch := range waiters { // which keep their places
			got := <-ch
			if got.err != nil || got.l.Token() != last.Token()+1 {
				b.Fatalf("waiter %d: token %d after %d, error %v", i, got.l.Token(), last.Token(), got.err)
			}
			last = got.l
			b.release(last)
		}
		for i := range 10 {
			b.acquire(fmt.Sprintf("other %d", i))
		}
		if asked := b.nodes[1].Requests(); len(asked) > 0 {
			b.Errorf("a standby was asked: %v", asked)
		}
		if got := b.c.Status().Active; got != "n3" {
			b.Errorf("active %q", got)
		}
	})
}

func TestBehaviour4RemembersTheActive(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "n2:7620", "n2")
		b.nodes[1].SetRole(wire.RoleStandby, "", "") // promoted unnoticed:
		b.dial()
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		for i := range 20 {
			b.acquire(fmt.Sprintf("key %d", i))
		}
		if n := b.c.Status().Counters.Redirects; n > 1 {
			b.Errorf("%d redirects for 20 calls", n)
		}
		if got := b.c.Status().Active; got != "n2" {
			b.Errorf("active %q", got)
		}
	})
}

// Nobody says who the active is; that a node serves says it.
func TestBehaviour4NoticesWhoServes(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		for _, s := range b.nodes {
			s.SetRole(wire.RoleStandby, "", "")
		}
		b.dial()
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.release(b.acquire("jobs"))
		if got := b.c.Status().Active; got != "n2" {
			b.Errorf("active %q", got)
		}
	})
}

func TestBehaviour4DialsAnAddressThatIsNotInTheList(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.onlyTo(1)
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.nodes[0].Demote("n2:7620", "n2")
		synctest.Wait()
		l := b.acquire("jobs")
		if len(b.nodes[1].Requests(wire.OpAcquire)) != 1 {
			b.Error("n2 was not asked")
		}
		b.release(l)
		if b.c.Status().Counters.Redirects > 0 {
			b.Error("the push should have saved the redirect")
		}
	})
}

// Names the active in the welcome: a client of a standby alone needs no redirect.
func TestBehaviour4GoesWhereTheWelcomePoints(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.c = b.client([]string{"n2:7620"})
		b.release(b.acquire("jobs"))
		if asked := b.nodes[1].Requests(); len(asked) > 0 {
			b.Errorf("the standby was asked: %v", asked)
		}
	})
}

func TestBehaviour4FollowConfigured(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.onlyTo(1, WithFollow(FollowConfigured))
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.nodes[0].Demote("n2:7620", "n2")
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
		defer cancel()
		_, err := b.c.Acquire(ctx, "jobs")
		b.is(err, ErrNotAcquired, ErrNoActive, context.DeadlineExceeded)
		if b.dialledAddr("n2:7620") > 0 {
			b.Error("an address that is not configured was dialled")
		}
	})
}

// A client in another network knows the same node by its own address.
func TestBehaviour4PrefersItsOwnAddressOfANode(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.net.Add("localhost:7630", b.nodes[1])
		b.net.Add("localhost:7620", b.nodes[0])
		b.c = b.client([]string{"localhost:7620", "localhost:7630"})
		synctest.Wait()
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.nodes[0].Demote("n2:7620", "n2")
		b.release(b.acquire("jobs"))
		if n := b.dialledAddr("n2:7620"); n > 0 {
			b.Errorf("n2's own address was dialled %d times", n)
		}
	})
}

func TestBehaviour4AddressThatCannotBeDialledFallsBackToTheList(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "gone:7620", "gone")
		b.nodes[1].SetRole(wire.RoleStandby, "", "")
		b.dial()
		time.Sleep(time.Second)
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		began := time.Now()
		b.release(b.acquire("jobs"))
		b.took(began, 0, time.Second)
	})
}

// What is asked in a loop of redirects: four requests at once, then pauses.
func TestBehaviour4HopLimitThenPause(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "n2:7620", "n2")
		b.nodes[1].SetRole(wire.RoleStandby, "n1:7620", "n1")
		b.dial()
		began := time.Now()
		_, err := b.c.TryAcquire(b.Context(), "jobs")
		b.is(err, ErrNoActive)
		b.took(began, noActiveTime, time.Second)

		asked := append(b.nodes[0].Requests(wire.OpAcquire), b.nodes[1].Requests(wire.OpAcquire)...)
		at := map[time.Duration]int{}
		for _, r := range asked {
			at[r.At.Sub(began)]++
		}
		if at[0] != maxHops+1 {
			b.Errorf("%d requests at once, want %d", at[0], maxHops+1)
		}
		if n := len(asked); n < 150 || n > 280 {
			b.Errorf("%d requests in %v", n, noActiveTime)
		}
		for d, n := range at {
			if n > maxHops+1 {
				b.Errorf("%d requests at %v", n, d)
			}
		}
		time.Sleep(10 * time.Second) // a TryAcquire leaves nothing behind that would have to be asked for
		if n := len(b.nodes[0].Requests()) + len(b.nodes[1].Requests()); n != len(asked) {
			b.Errorf("%d requests after the error", n-len(asked))
		}
	})
}

// C-54: a standby that knows no active.
func TestBehaviour4EmptyAddress(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "", "")
		b.dial()
		waiting := b.start(context.Background(), "jobs")
		time.Sleep(3 * time.Second)
		if n := len(b.nodes[0].Requests(wire.OpAcquire)); n < 12 || n > 22 {
			b.Errorf("%d requests in 3 s, want one every fifth of a second or so", n)
		}
		b.nodes[0].SetRole(wire.RoleActive, "", "")
		if got := <-waiting; got.err != nil {
			b.Error(got.err)
		}
	})
}

func TestBehaviour4NoActiveListsTheNodes(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "", "")
		b.net.Set("n2:7620", fakeserver.Refusing)
		b.dial()
		_, err := b.c.Acquire(b.Context(), "jobs")
		b.is(err, ErrNoActive)
		for _, want := range []string{`acquire "jobs"`, "n1:7620: a standby", "n2:7620: dial: dial tcp: connection refused"} {
			if !strings.Contains(err.Error(), want) {
				b.Errorf("%q does not say %q", err, want)
			}
		}
	})
}

// A node that is stopping may say "unavailable" for a moment.
func TestBehaviour4UnavailableIsAskedAgain(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.nodes[0].SetHook(refuse(wire.CodeUnavailable, 3))
		b.release(b.acquire("jobs"))

		b.nodes[0].SetHook(refuse(wire.CodeUnavailable, 1<<30))
		began := time.Now()
		_, err := b.c.Acquire(b.Context(), "jobs")
		if err == nil || !strings.Contains(err.Error(), "server error 6 (unavailable): no") {
			b.Errorf("error %v", err)
		}
		b.took(began, noActiveTime, time.Second)
	})
}

// refuse is a hook that answers the first n acquires with an error.
func refuse(code wire.Code, n int) func(c *fakeserver.Conn, r *wire.Request) bool {
	return func(c *fakeserver.Conn, r *wire.Request) bool {
		if r.Op != wire.OpAcquire || n == 0 {
			return false
		}
		n--
		c.Reply(r, wire.Reply{Status: wire.StatusError, Code: code, Message: []byte("no")})
		return true
	}
}
