package client

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestBehaviour1TwoConnectionsToASingleAddress(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		if n := len(b.nodes[0].Conns()); n != 2 {
			b.Fatalf("%d connections, want 2", n)
		}
		held := b.acquire("held")
		b.nodes[0].Conns()[0].Cut() // in the same instant:
		began := time.Now()
		b.release(b.acquire("other"))
		b.release(held)
		b.took(began, 0, 200*time.Millisecond) // a release that was caught waits for its next turn
		b.free()
	})
}

func TestBehaviour1OneConnectionPerAddress(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		b.dial()
		for _, s := range b.nodes {
			if n := len(s.Conns()); n != 1 {
				b.Errorf("%s: %d connections, want 1", s.Node, n)
			}
		}
	})
}

func TestBehaviour2RoundRobin(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		for i := range 10 {
			b.acquire(fmt.Sprintf("key %d", i))
		}
		perConn := map[int]int{}
		for _, r := range b.nodes[0].Requests(wire.OpAcquire) {
			perConn[r.Conn]++
		}
		if perConn[0] != 5 || perConn[1] != 5 {
			b.Errorf("requests per connection: %v", perConn)
		}
	})
}

func TestBehaviour2ReconnectTimes(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		b.net.Set("n1:7620", fakeserver.Refusing)
		lost := time.Now()
		b.nodes[0].CutAll()
		time.Sleep(time.Minute)
		last, n, gaps := lost, 0, map[time.Duration]bool{}
		for _, d := range b.net.Dials() {
			if d.Addr != "n1:7620" || !d.At.After(lost) {
				continue
			}
			low, high := 2400*time.Millisecond, 3600*time.Millisecond
			if n == 0 {
				low, high = 0, 1500*time.Millisecond
			}
			if gap := d.At.Sub(last); gap < low || gap > high {
				b.Errorf("attempt %d came %v after the one before, want %v to %v", n, gap, low, high)
			}
			gaps[d.At.Sub(last)] = true
			last, n = d.At, n+1
		}
		if len(gaps) < n {
			b.Errorf("%d different pauses between %d attempts", len(gaps), n)
		}
		if n < 16 {
			b.Errorf("%d attempts in a minute", n)
		}
	})
}

// C-34: clients do not knock together after an outage.
func TestBehaviour2NoHerd(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		const clients = 600
		var all []*Client
		for range clients {
			all = append(all, b.client(b.addrs()))
		}
		synctest.Wait()
		b.net.Set("n1:7620", fakeserver.Refusing)
		lost := time.Now()
		b.nodes[0].CutAll()
		time.Sleep(20 * time.Second)
		b.net.Set("n1:7620", fakeserver.Serving)
		time.Sleep(10 * time.Second)
		for _, c := range all {
			if s := c.Status(); !s.Conns[0].Connected || !s.Conns[1].Connected {
				b.Fatal("not connected 10 s after the outage")
			}
			c.Close()
		}
		checkSpread(t, b.net.Dials(), lost, lost.Add(20*time.Second))
	})
}

// checkSpread fails if a tenth of a second has more than three times the mean of attempts.
func checkSpread(t *testing.T, dials []fakeserver.Dialled, from, to time.Time) {
	t.Helper()
	const bucket = 100 * time.Millisecond
	counts := make([]int, to.Sub(from)/bucket+1)
	total := 0
	for _, d := range dials {
		if d.At.After(from) && d.At.Before(to) {
			counts[d.At.Sub(from)/bucket]++
			total++
		}
	}
	mean := float64(total) / float64(len(counts))
	if most := slices.Max(counts); float64(most) > 3*mean {
		t.Errorf("%d attempts in a tenth of a second, %.1f in the mean", most, mean)
	}
}

func TestBehaviour3Pipelined(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		const callers = 50
		var held []func() // what each answer waits for
		b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
			if r.Op != wire.OpAcquire {
				return false
			}
			req := *r
			held = append(held, func() { c.Answer(&req) })
			return true
		})
		results := make([]chan outcome, callers)
		for i := range results {
			results[i] = b.start(context.Background(), fmt.Sprintf("key %d", i))
		}
		if len(held) != callers {
			b.Fatalf("%d requests were sent before the first answer, want %d", len(held), callers)
		}
		slices.Reverse(held)
		for _, answer := range held {
			answer()
		}
		for i, ch := range results {
			got := <-ch
			if got.err != nil || got.l.Key() != fmt.Sprintf("key %d", i) || got.l.Token() != uint64(callers-i) {
				b.Errorf("caller %d: %+v", i, got)
			}
		}
	})
}

// A node that answers what was not asked is not to be trusted with more.
func TestBehaviour3StrangeAnswersEndTheConnection(t *testing.T) {
	for name, answer := range map[string]wire.Reply{
		"unknown id":   {Op: wire.OpAcquire, Status: wire.StatusGranted, ID: 77, Key: []byte("jobs"), Token: 1, LeaseMS: 1000},
		"another key":  {Op: wire.OpAcquire, Status: wire.StatusGranted, ID: 1, Key: []byte("sobj"), Token: 1, LeaseMS: 1000},
		"another op":   {Op: wire.OpRelease, Status: wire.StatusReleased, ID: 1, Key: []byte("jobs")},
		"no request":   {Op: wire.OpError, Status: wire.StatusError, Code: wire.CodeMalformed, Message: []byte("length out of range")},
		"broken frame": {Op: wire.OpAcquire, Status: 'Z', ID: 1, Key: []byte("jobs")},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(b *bed) {
				b.dial()
				spoilt := false
				b.nodes[0].SetHook(func(c *fakeserver.Conn, r *wire.Request) bool {
					if r.Op != wire.OpAcquire || spoilt {
						return false
					}
					spoilt = true
					c.Send(answer)
					return true
				})
				l := b.acquire("jobs") // goes on elsewhere
				b.release(l)
				if b.nodes[0].Conns()[0].Alive() && b.nodes[0].Conns()[1].Alive() {
					b.Error("both connections stand")
				}
			})
		})
	}
}

func TestBehaviour3UnknownPushIsIgnored(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		for _, c := range b.nodes[0].Conns() {
			c.Send(wire.Reply{Op: 'Q', Key: []byte("whatever")})
			c.Send(wire.Reply{Op: wire.OpContended, Key: []byte("jobs"), Token: 1, Waiters: 3})
		}
		b.release(b.acquire("jobs"))
		if n := len(b.nodes[0].Conns()); n != 2 {
			b.Errorf("%d connections were made, want 2", n)
		}
	})
}
