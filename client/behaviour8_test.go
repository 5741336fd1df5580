package client

import (
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

// C-36: the active is a black hole for this client; another node serves.
func TestBehaviour8PingsFindHalfOpenConnections(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial(WithPing(2*time.Second, 2*time.Second))
		time.Sleep(time.Minute)
		if n := len(b.net.Dials()); n != 2 {
			b.Fatalf("%d connections were made on a healthy network", n)
		}
		b.nodes[0].SetHook(func(*fakeserver.Conn, *wire.Request) bool { return true })
		b.net.Set("n1:7620", fakeserver.Dropping)
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		began := time.Now()
		l := b.acquire("jobs") // under way on the dead connection
		b.took(began, 0, 4100*time.Millisecond)
		b.release(l)
	})
}

func TestBehaviour8SilenceIsNoFault(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.table().Take("jobs", 100*time.Hour)
		b.start(b.Context(), "jobs")
		time.Sleep(24 * time.Hour)
		if n := len(b.net.Dials()); n != 2 {
			b.Errorf("%d connections were made in a quiet day", n)
		}
		if b.table().Waiting("jobs") != 1 {
			b.Error("the waiter is gone")
		}
	})
}

// Whatever is heard counts as life, be it ever so late.
func TestBehaviour8SlowAnswersKeepTheConnection(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 1400 * time.Millisecond
		b.dial()
		time.Sleep(time.Hour)
		if n := len(b.net.Dials()); n != 2 {
			b.Errorf("%d connections were made", n)
		}
	})
}

func TestBehaviour8IdleClientPingsOnce(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if n := len(b.nodes[0].Requests(wire.OpPing)); n != 24 {
			b.Errorf("%d pings in a minute on two connections, want one every 5 s on each", n)
		}
	})
}
