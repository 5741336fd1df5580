package client

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"holdfast/wire"
)

// dialReal makes a client over real sockets that is connected.
func dialReal(tb testing.TB, addr string, opts ...Option) *Client {
	tb.Helper()
	c, err := New([]string{addr}, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		tb.Fatal(err)
	}
	return c
}

// The budget is the Lock and one more.
func TestAllocations(t *testing.T) {
	c := dialReal(t, newEchoServer(t).addr())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := testing.AllocsPerRun(2000, func() {
		l, err := c.Acquire(ctx, "jobs/0123456789", WithLease(30*time.Second), WithWait(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
	budget := 2.0
	if poolIsLeaky {
		budget += 2
	}
	if got > budget {
		t.Errorf("%v allocations per acquire and release; the Lock and at most one more", got)
	}
}

// BenchmarkPair measures acquire+release pairs through one Client by many
// callers; BenchmarkRawPair the same frames, pipelined by hand on as many
// connections. Their ratio is what the client costs.
func BenchmarkPair(b *testing.B) {
	for _, callers := range []int{1, 16, 256, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			c := dialReal(b, newEchoServer(b).addr())
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range callers {
				n := b.N / callers
				if i < b.N%callers {
					n++
				}
				key := fmt.Sprintf("jobs/%011d", i)
				wg.Go(func() {
					for range n {
						l, err := c.Acquire(context.Background(), key, WithLease(30*time.Second))
						if err != nil {
							b.Error(err)
							return
						}
						if err := l.Release(context.Background()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkRawPair(b *testing.B) {
	for _, depth := range []int{1, 16, 256, 1024} {
		b.Run(fmt.Sprintf("outstanding=%d", depth), func(b *testing.B) {
			addr := newEchoServer(b).addr()
			conns := min(2, depth)
			var wg sync.WaitGroup
			b.ResetTimer()
			for range conns {
				wg.Go(func() { rawPairs(b, addr, b.N/conns, depth/conns) })
			}
			wg.Wait()
		})
	}
}

// rawPairs keeps depth requests under way: each answered acquire is followed by
// its release, and each release by the next acquire.
func rawPairs(b *testing.B, addr string, pairs, depth int) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer nc.Close()
	out := wire.AppendRequest(nil, &wire.Request{Op: wire.OpHello, Version: wire.Version})
	keys := make([][]byte, depth)
	acquire := func(i int) {
		out = wire.AppendRequest(out, &wire.Request{
			Op: wire.OpAcquire, ID: uint32(i + 1), Key: keys[i], LeaseMS: 30_000, Ticket: wire.Ticket{1, byte(i)},
		})
	}
	sent := 0
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "jobs/%011d", i)
		if sent < pairs {
			sent++
			acquire(i)
		}
	}
	in := make([]byte, 1<<16)
	end := 0
	var r wire.Reply
	for done := 0; done < pairs; {
		if _, err := nc.Write(out); err != nil {
			b.Error(err)
			return
		}
		out = out[:0]
		n, err := nc.Read(in[end:])
		if err != nil {
			b.Error(err)
			return
		}
		end += n
		used := 0
		for {
			k, err := r.Decode(in[used:end])
			if err != nil {
				b.Error(err)
				return
			}
			if k == 0 {
				break
			}
			used += k
			i := int(r.ID) - 1
			switch {
			case r.Op == wire.OpAcquire:
				out = wire.AppendRequest(out, &wire.Request{Op: wire.OpRelease, ID: r.ID, Key: keys[i], Token: r.Token})
			case r.Op == wire.OpRelease:
				done++
				if sent < pairs {
					sent++
					acquire(i)
				}
			}
		}
		end = copy(in, in[used:end])
	}
}
