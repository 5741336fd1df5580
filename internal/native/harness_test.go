package native

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/wire"
)

// fixture is a node and its server, with clients. In a bubble it listens in
// memory and settle waits for everybody; else it listens on loopback.
type fixture struct {
	t      testing.TB
	node   *node.Node
	srv    *Server
	ln     net.Listener
	bubble bool
	dial   func() net.Conn

	stop func()
}

// network is what a fixture's connections are.
type network int

const (
	inMemory network = iota // pipes, in a bubble
	loopback
	tight // loopback, where the server's socket takes little that the client does not read
)

// tightListener accepts connections with small send buffers. (Small receive
// buffers would make the kernel drop what it had room for, and stall.)
type tightListener struct{ net.Listener }

func (l tightListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		err = nc.(*net.TCPConn).SetWriteBuffer(32 << 10)
	}
	return nc, err
}

// start runs a server in the calling test, or in its bubble.
func start(t testing.TB, on network, change ...func(*node.Config, *Config)) *fixture {
	t.Helper()
	if on == inMemory {
		time.Sleep(time.Until(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))) // a bubble's clock begins in 2000
	}
	nodeCfg := node.Config{Name: "n1", Version: "test", Native: "127.0.0.1:7620", Table: locks.DefaultConfig()}
	var cfg Config
	for _, f := range change {
		f(&nodeCfg, &cfg)
	}
	n, err := node.New(nodeCfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg = DefaultConfig(n)
	for _, f := range change {
		f(&nodeCfg, &cfg)
	}
	f := &fixture{t: t, node: n, srv: New(cfg), bubble: on == inMemory}
	if on == inMemory {
		ln := newMemoryListener()
		f.ln, f.dial = ln, ln.dial
	} else {
		f.listen(on)
	}
	f.run()
	return f
}

func (f *fixture) listen(on network) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	f.ln = ln
	if on == tight {
		f.ln = tightListener{ln}
	}
	f.dial = func() net.Conn {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			f.t.Fatal(err)
		}
		return nc
	}
}

func newNode(t testing.TB) *node.Node {
	n, err := node.New(node.Config{Name: "n1", Table: locks.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run starts the goroutines, which stop ends and waits for.
func (f *fixture) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f.node.Run(ctx) })
	wg.Go(func() {
		if err := f.srv.Serve(ctx, f.ln); err != nil {
			f.t.Errorf("Serve: %v", err)
		}
	})
	f.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	f.t.Cleanup(f.stop)
}

// memoryListener hands out the ends of pipes.
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *memoryListener) dial() net.Conn {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
	case <-l.done:
		far.Close()
	}
	return near
}

// client is the other side of a connection. What it reads it keeps.
type client struct {
	t    testing.TB
	nc   net.Conn
	name string

	mu      sync.Mutex // guards what follows
	replies []wire.Reply
	raw     []byte // what is no frame
	closed  bool
	changed chan struct{} // closed and replaced whenever something was read
	wg      sync.WaitGroup
}

// connect opens a connection and starts to read it.
func (f *fixture) connect(name string) *client {
	c := &client{t: f.t, nc: f.dial(), name: name, changed: make(chan struct{})}
	c.wg.Go(c.readAll)
	f.t.Cleanup(c.close)
	return c
}

// greet connects and says hello.
func (f *fixture) greet(name string) *client {
	c := f.connect(name)
	c.send(wire.Request{Op: wire.OpHello, Version: wire.Version, Owner: []byte(name)})
	if r := c.next(); r.Op != wire.OpHello || r.Status != wire.StatusWelcome {
		f.t.Fatalf("%s: hello answered %v", name, r)
	}
	return c
}

func (c *client) close() {
	c.nc.Close()
	c.wg.Wait()
}

func (c *client) readAll() {
	var buf []byte
	chunk := make([]byte, 4096)
	for {
		n, err := c.nc.Read(chunk)
		buf = append(buf, chunk[:n]...)
		c.mu.Lock()
		for {
			var r wire.Reply
			n, err := r.Decode(buf)
			if err != nil {
				c.raw = append(c.raw, buf...)
				buf = nil
			}
			if n == 0 {
				break
			}
			r.Key, r.Message = clone(r.Key), clone(r.Message)
			r.Addr, r.Node = clone(r.Addr), clone(r.Node)
			r.Software, r.ActiveNode = clone(r.Software), clone(r.ActiveNode)
			c.replies = append(c.replies, r)
			buf = buf[n:]
		}
		c.closed = err != nil
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

func (c *client) send(reqs ...wire.Request) {
	c.t.Helper()
	var b []byte
	for i := range reqs {
		b = wire.AppendRequest(b, &reqs[i])
	}
	c.sendBytes(b)
}

func (c *client) sendBytes(b []byte) {
	c.t.Helper()
	if _, err := c.nc.Write(b); err != nil && !errors.Is(err, net.ErrClosed) {
		c.t.Logf("%s: write: %v", c.name, err)
	}
}

// await waits until ok says so of what was read, or the connection is closed.
func (c *client) await(ok func() bool) {
	for {
		c.mu.Lock()
		done, changed := ok() || c.closed, c.changed
		c.mu.Unlock()
		if done {
			return
		}
		<-changed
	}
}

// next waits for a reply and takes it; it is zero where the connection was closed.
func (c *client) next() wire.Reply {
	c.await(func() bool { return len(c.replies) > 0 })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.replies) == 0 {
		return wire.Reply{}
	}
	r := c.replies[0]
	c.replies = c.replies[1:]
	return r
}

// ended waits for the end of the connection and returns what was not taken.
func (c *client) ended() ([]wire.Reply, string) {
	c.await(func() bool { return false })
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replies, string(c.raw)
}

// take returns what was read so far.
func (c *client) take() []wire.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.replies
	c.replies = nil
	return all
}

// sync waits until everything sent before was answered as far as it will be at
// once: a pong comes after that.
func (c *client) sync() {
	c.t.Helper()
	const id = 1<<32 - 1
	c.send(wire.Request{Op: wire.OpPing, ID: id})
	pong := -1
	c.await(func() bool {
		for i, r := range c.replies {
			if r.Op == wire.OpPing && r.ID == id {
				pong = i
			}
		}
		return pong >= 0
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if pong >= 0 {
		c.replies = append(c.replies[:pong], c.replies[pong+1:]...)
	}
}

func acquireOf(id uint32, key string) wire.Request {
	return wire.Request{Op: wire.OpAcquire, ID: id, Key: []byte(key), LeaseMS: 30_000}
}

func tryOf(id uint32, key string) wire.Request {
	r := acquireOf(id, key)
	r.Flags = wire.FlagTry
	return r
}

func releaseOf(id uint32, key string, token uint64) wire.Request {
	return wire.Request{Op: wire.OpRelease, ID: id, Key: []byte(key), Token: token}
}

// outcomes are the replies in short: op, outcome and id.
func outcomes(replies []wire.Reply) string {
	var s []string
	for _, r := range replies {
		s = append(s, r.Op.String()+" "+r.Outcome())
	}
	return strings.Join(s, ", ")
}

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }
