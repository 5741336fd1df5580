package native

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/wire"
)

// rawClient speaks frames without any goroutine of its own.
type rawClient struct {
	nc  net.Conn
	buf []byte
	r   int
	w   int
	out []byte
}

func newRawClient(b testing.TB, nc net.Conn) *rawClient {
	c := &rawClient{nc: nc, buf: make([]byte, 64<<10)}
	c.out = wire.AppendRequest(c.out, &wire.Request{Op: wire.OpHello, Version: wire.Version, Owner: []byte("bench")})
	c.flush(b)
	c.read(b)
	return c
}

func (c *rawClient) flush(b testing.TB) {
	if _, err := c.nc.Write(c.out); err != nil {
		b.Error(err)
	}
	c.out = c.out[:0]
}

// read returns the next reply; its slices are good until the next read.
func (c *rawClient) read(b testing.TB) wire.Reply {
	var r wire.Reply
	for {
		n, err := r.Decode(c.buf[c.r:c.w])
		if err != nil {
			b.Error(err)
			return r
		}
		if n > 0 {
			c.r += n
			return r
		}
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
		n, err = c.nc.Read(c.buf[c.w:])
		if err != nil {
			b.Error(err)
			return r
		}
		c.w += n
	}
}

// pairs acquires and releases n keys, depth at a time.
func (c *rawClient) pairs(b testing.TB, name string, n, depth int) {
	keys := make([][]byte, depth)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%s/%08d", name, i)
	}
	for done := 0; done < n; done += depth {
		for i, key := range keys {
			c.out = wire.AppendRequest(c.out, &wire.Request{Op: wire.OpAcquire, ID: uint32(i + 1), Key: key})
		}
		c.flush(b)
		for i := range keys {
			r := c.read(b)
			c.out = wire.AppendRequest(c.out, &wire.Request{Op: wire.OpRelease, ID: uint32(i + 1), Key: r.Key, Token: r.Token})
		}
		c.flush(b)
		for range keys {
			c.read(b)
		}
	}
}

// BenchmarkPipelined is acquire and release pairs over loopback; client and
// server share the processors.
func BenchmarkPipelined(b *testing.B) {
	for _, depth := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			f := start(b, loopback)
			const conns = 8
			clients := make([]*rawClient, conns)
			for i := range clients {
				clients[i] = newRawClient(b, f.dial())
				defer clients[i].nc.Close()
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, c := range clients {
				wg.Go(func() { c.pairs(b, strconv.Itoa(i), b.N/conns, depth) })
			}
			wg.Wait()
		})
	}
}

// BenchmarkHandOff passes one key round between two connections: a release of
// one is the grant of the other.
func BenchmarkHandOff(b *testing.B) {
	f := start(b, loopback)
	one, other := newRawClient(b, f.dial()), newRawClient(b, f.dial())
	defer one.nc.Close()
	defer other.nc.Close()
	ask := func(c *rawClient) {
		c.out = wire.AppendRequest(c.out, &wire.Request{Op: wire.OpAcquire, ID: 1, Key: []byte("key")})
	}
	ask(one)
	one.flush(b)
	token := one.read(b).Token
	b.ResetTimer()
	for range b.N {
		ask(other)
		other.flush(b)
		one.out = wire.AppendRequest(one.out, &wire.Request{Op: wire.OpRelease, ID: 2, Key: []byte("key"), Token: token})
		one.flush(b)
		token = other.read(b).Token
		one.read(b)
		one, other = other, one
	}
}

// BenchmarkIdleConnection reports what an idle connection costs the server:
// heap and stacks, and the growth of the process, which holds the clients'
// ends too.
func BenchmarkIdleConnection(b *testing.B) {
	const conns = 5000
	for range b.N {
		f := start(b, loopback)
		var clients []net.Conn
		before := measure()
		for i := range conns {
			nc := f.dial()
			clients = append(clients, nc)
			c := rawClient{nc: nc, buf: make([]byte, 1024)}
			c.out = wire.AppendRequest(c.out, &wire.Request{Op: wire.OpHello, Version: wire.Version, Owner: []byte("bench")})
			c.flush(b)
			c.read(b)
			key := fmt.Appendf(nil, "idle/%d", i)
			c.out = wire.AppendRequest(c.out, &wire.Request{Op: wire.OpAcquire, ID: 1, Key: key})
			c.flush(b)
			c.out = wire.AppendRequest(c.out, &wire.Request{Op: wire.OpRelease, ID: 1, Key: key, Token: c.read(b).Token})
			c.flush(b)
			c.read(b)
		}
		after := measure()
		b.ReportMetric(float64(after.heap-before.heap)/conns, "heap-B/conn")
		b.ReportMetric(float64(after.stack-before.stack)/conns, "stack-B/conn")
		b.ReportMetric(float64(after.rss-before.rss)/conns, "rss-B/conn")
		for _, nc := range clients {
			nc.Close()
		}
		f.stop()
	}
}

type memory struct{ heap, stack, rss int64 }

func measure() memory {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var rss int64
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(statm)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			rss = pages * int64(os.Getpagesize())
		}
	}
	return memory{int64(m.HeapAlloc), int64(m.StackInuse), rss}
}

// BenchmarkWork is what a pair costs without sockets: decoding, the table, and
// encoding the answers.
func BenchmarkWork(b *testing.B) {
	srv := New(DefaultConfig(newNode(b)))
	c := &conn{srv: srv, nc: discard{}}
	c.in.c = c
	c.in.judged = true
	batch := new(batch)
	feed := func(frames []byte) {
		in := c.in.unpark()
		in.end += copy(in.b[in.end:], frames)
		if why := c.consume(batch); why != goesOn {
			b.Fatal(why)
		}
		in.start, in.end = 0, 0
	}
	feed(wire.AppendRequest(nil, &wire.Request{Op: wire.OpHello, Version: wire.Version}))
	defer func() { c.sess.Close() }()
	c.out.drop()
	const depth = 128
	var acquires, releases []byte
	keys := make([][]byte, depth)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "work/%011d", i)
		acquires = wire.AppendRequest(acquires, &wire.Request{Op: wire.OpAcquire, ID: uint32(i + 1), Key: keys[i]})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += depth {
		feed(acquires)
		releases = releases[:0]
		at := 0
		for i := range keys {
			var r wire.Reply
			n, err := r.Decode(c.out.head.b[at:c.out.head.end])
			if err != nil || n == 0 {
				b.Fatal(err)
			}
			at += n
			releases = wire.AppendRequest(releases, &wire.Request{Op: wire.OpRelease, ID: uint32(i + 1), Key: keys[i], Token: r.Token})
		}
		c.out.drop()
		feed(releases)
		c.out.drop()
	}
}

// discard is a connection that nothing is read from or written to.
type discard struct{ net.Conn }

func (discard) SetReadDeadline(time.Time) error { return nil }
