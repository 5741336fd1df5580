package client

import (
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestBoundLockMovesToAnotherConnection(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", BoundToConnection(), WithLease(time.Hour))
		for range 20 {
			conns := b.nodes[0].Conns()
			conns[len(conns)-1].Cut()
			conns[len(conns)-2].Cut()
			time.Sleep(10 * time.Second)
			if l.Err() != nil || b.table().Holder("jobs") != l.Token() {
				b.Fatal(l.Err())
			}
		}
		b.release(l)
		for _, r := range b.nodes[0].Requests(wire.OpAcquire)[1:] {
			if r.Flags != wire.FlagBound|wire.FlagRetry|wire.FlagTry {
				b.Errorf("asked again with %v", r.Flags)
			}
		}
	})
}

func TestBoundLockFollowsItsExtensions(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", BoundToConnection(), WithLease(time.Hour))
		if err := l.Extend(b.Context(), time.Hour); err != nil { // over the other connection
			b.Fatal(err)
		}
		n := len(b.nodes[0].Requests(wire.OpAcquire))
		b.nodes[0].Conns()[b.nodes[0].Requests(wire.OpAcquire)[0].Conn].Cut()
		time.Sleep(10 * time.Second)
		if got := len(b.nodes[0].Requests(wire.OpAcquire)); got != n || l.Err() != nil {
			b.Errorf("%d acquires for a lock that had moved already; %v", got-n, l.Err())
		}
		b.release(l)
	})
}

func TestBoundLockIsLostWithItsConnection(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", BoundToConnection(), WithLease(time.Hour))
		ctx, began := l.Context(), time.Now()
		b.outage(time.Minute)
		<-ctx.Done()
		b.took(began, boundGrace, 0)
		if b.table().Holder("jobs") == 0 {
			b.Error("the server was faster")
		}
		b.lostAs(l, LostConnection)
	})
}

// A hand-off leaves the connection standing, but the new active knows nobody by it.
func TestBoundLockMovesWithTheActive(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", BoundToConnection(), WithLease(time.Hour))
		for i := range 4 {
			from, to := b.nodes[i%2], b.nodes[1-i%2]
			to.SetRole(wire.RoleActive, "", "")
			from.Demote(to.Node+":7620", to.Node)
			time.Sleep(10 * time.Second)
			if l.Err() != nil || b.table().Holder("jobs") != l.Token() {
				b.Fatalf("hand-off %d: %v", i, l.Err())
			}
		}
		b.release(l)
		if n := len(b.net.Dials()); n != 2 {
			b.Errorf("%d connections were made", n)
		}
	})
}

// The server has let go meanwhile: the old lock is lost, and what the question
// took anew is given back.
func TestBoundLockThatWasLetGo(t *testing.T) {
	for _, taken := range []bool{false, true} {
		inBubble(t, 1, func(b *bed) {
			b.dial()
			l := b.acquire("jobs", BoundToConnection(), WithLease(time.Hour))
			b.table().End(l.Token(), "withdrawn")
			var other uint64
			if taken {
				other = b.table().Take("jobs", time.Hour)
			}
			b.nodes[0].CutAll()
			time.Sleep(3 * time.Second)
			b.lostAs(l, LostDenied)
			if b.table().Holder("jobs") != other {
				b.Error("a lock was left behind")
			}
		})
	}
}

func TestBoundLockWhoseConnectionEndsWithTheGrant(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.nodes[0].SetHook(once(wire.OpAcquire, func(c *fakeserver.Conn, r *wire.Request) {
			c.Answer(r)
			time.AfterFunc(0, c.Cut)
		}))
		l := b.acquire("jobs", BoundToConnection(), WithLease(time.Hour))
		time.Sleep(time.Minute)
		synctest.Wait()
		if l.Err() != nil || b.table().Holder("jobs") != l.Token() {
			b.Error(l.Err())
		}
		b.release(l)
	})
}
