package client

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

// What happens to clusters, and who must not notice.

// crash kills node i: its connections end and it can't be dialled. The others
// know of no active from then on.
func (b *bed) crash(i int) {
	b.net.Set(b.addr(i), fakeserver.Refusing)
	b.nodes[i].CutAll()
	for j, s := range b.nodes {
		if j != i {
			s.SetRole(wire.RoleStandby, "", "")
		}
	}
}

// promote makes node i the active, and the others know it.
func (b *bed) promote(i int) {
	for j, s := range b.nodes {
		if j != i {
			s.SetRole(wire.RoleStandby, b.addr(i), b.nodes[i].Node)
		}
	}
	b.nodes[i].SetRole(wire.RoleActive, "", "")
}

// handOff makes node to the active in the place of node from.
func (b *bed) handOff(from, to int) {
	b.promote(to)
	b.nodes[from].Demote(b.addr(to), b.nodes[to].Node)
	synctest.Wait()
}

// cutOff takes node i off the network without a word to anybody.
func (b *bed) cutOff(i int) {
	b.net.Set(b.addr(i), fakeserver.Dropping)
	b.nodes[i].SetHook(func(*fakeserver.Conn, *wire.Request) bool { return true })
}

// presumeDead has node to take over from a node that has been cut off, after
// the time that a cluster takes to notice.
func (b *bed) presumeDead(i, to int) {
	time.Sleep(time.Second)
	b.nodes[i].Vanish()
	b.promote(to)
}

// restart stops node i, which is not the active, for so long.
func (b *bed) restart(i int, down time.Duration) {
	b.net.Set(b.addr(i), fakeserver.Refusing)
	b.nodes[i].CutAll()
	time.Sleep(down)
	b.net.Set(b.addr(i), fakeserver.Serving)
}

func (b *bed) addr(i int) string { return b.nodes[i].Node + ":7620" }

// crowd is what must not notice anything: holders, one that extends its lock
// by itself and one that is bound to its connection, and waiters in line.
type crowd struct {
	b       *bed
	holders []*Lock
	first   *Lock // before the waiters
	waiters []chan outcome
}

func (b *bed) crowd() *crowd {
	b.Helper()
	c := &crowd{b: b, first: b.acquire("queue", WithLease(time.Hour))}
	c.holders = []*Lock{
		b.acquire("plain", WithLease(time.Hour)),
		b.acquire("auto", WithLease(6*time.Second), WithAutoExtend()),
		b.acquire("bound", WithLease(time.Hour), BoundToConnection()),
	}
	for range 5 {
		c.waiters = append(c.waiters, b.start(context.Background(), "queue"))
	}
	return c
}

// check extends and releases everything, and lets the waiters have their turns in order.
func (c *crowd) check() {
	c.b.Helper()
	for _, l := range c.holders {
		if err := l.Extend(c.b.Context(), time.Minute); err != nil {
			c.b.Errorf("extend: %v", err)
		}
		if err := l.Release(context.Background()); err != nil {
			c.b.Errorf("release: %v", err)
		}
	}
	last := c.first
	for i, ch := range c.waiters {
		c.b.release(last)
		got := <-ch
		if got.err != nil {
			c.b.Fatalf("waiter %d: %v", i, got.err)
		}
		if got.l.Token() != last.Token()+1 {
			if i > 0 || got.l.Token() < last.Token() {
				c.b.Errorf("waiter %d has token %d after %d: it is out of line", i, got.l.Token(), last.Token())
			}
		}
		last = got.l
	}
	c.b.release(last)
	c.b.free()
}

// serveAlways takes and gives back a lock over and over, until the channel is
// drained by checkServed, and tells how long each turn took.
func (b *bed) serveAlways() (turns chan time.Duration) {
	turns = make(chan time.Duration)
	go func() {
		defer close(turns)
		for i := 0; ; i++ {
			began := time.Now()
			l, err := b.c.Acquire(context.Background(), fmt.Sprintf("turn %d", i))
			if err != nil {
				b.Errorf("turn %d: %v", i, err)
				return
			}
			if err := l.Release(context.Background()); err != nil {
				b.Errorf("turn %d: %v", i, err)
				return
			}
			select {
			case turns <- time.Since(began):
				return
			case <-time.After(10*time.Millisecond - time.Since(began)%(10*time.Millisecond)):
			}
			if d := time.Since(began); d > longestGap {
				b.Errorf("turn %d took %v", i, d)
			}
		}
	}()
	synctest.Wait()
	return turns
}

// longestGap is how long a hand-off to a node that was just restarted may take
// for a client: the time between two attempts to dial it, and a bit.
const longestGap = 600 * time.Millisecond

func (b *bed) checkServed(turns chan time.Duration) {
	b.Helper()
	if _, ok := <-turns; !ok {
		b.Error("the turns ended early")
	}
}
