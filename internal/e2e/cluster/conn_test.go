//go:build linux

package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"holdfast/wire"
)

// conn is a connection of the native protocol that says nothing by itself. Any number of goroutines may ask at once:
// requests are pipelined.
type conn struct {
	nc      net.Conn
	welcome wire.Reply
	handle  func(wire.Reply) // gets what nobody waits for; nil = ignored
	gone    chan struct{}    // closed when nothing more will come

	mu      sync.Mutex // guards what follows
	id      uint32
	pending map[uint32]chan wire.Reply // what waits, by the request's id
	heard   time.Time
}

// open connects and says hello, within a limit: a paused process accepts connections and answers nothing.
func (s *set) open(addr string, limit time.Duration, handle func(wire.Reply)) (*conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	nc, err := s.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, handle: handle, gone: make(chan struct{}), pending: map[uint32]chan wire.Reply{}, heard: time.Now()}
	go c.read()
	hello, err := c.ask(ctx, wire.Request{Op: wire.OpHello, Version: wire.Version, Owner: []byte("raw")})
	if err == nil && hello.Status != wire.StatusWelcome {
		err = fmt.Errorf("hello to %s was answered %c: %s", addr, hello.Status, hello.Message)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	c.welcome = hello
	return c, nil
}

// must opens a connection to the node.
func (n *node) must() *conn {
	n.t.Helper()
	c, err := n.set.open(n.native(), patience, nil)
	if err != nil {
		n.t.Fatalf("connect to %s: %v", n.name, err)
	}
	n.t.Cleanup(c.close)
	return c
}

func (c *conn) read() {
	defer close(c.gone)
	var in []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := c.nc.Read(buf)
		in = append(in, buf[:n]...)
		used := 0
		for {
			var r wire.Reply
			size, bad := r.Decode(in[used:])
			if bad != nil {
				return
			}
			if size == 0 {
				break
			}
			used += size
			c.deliver(own(r))
		}
		in = in[:copy(in, in[used:])]
		if err != nil {
			return
		}
	}
}

// own copies what a reply borrows.
func own(r wire.Reply) wire.Reply {
	for _, b := range []*[]byte{&r.Key, &r.Message, &r.Addr, &r.Node, &r.Software, &r.ActiveNode} {
		*b = slices.Clone(*b)
	}
	return r
}

func (c *conn) deliver(r wire.Reply) {
	c.mu.Lock()
	c.heard = time.Now()
	waits, found := c.pending[r.ID]
	delete(c.pending, r.ID)
	c.mu.Unlock()
	switch {
	case found:
		waits <- r
	case c.handle != nil:
		c.handle(r)
	}
}

// begin sends a request and returns where its answer will come.
func (c *conn) begin(r wire.Request) (<-chan wire.Reply, error) {
	answer := make(chan wire.Reply, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id++
	r.ID = c.id
	c.pending[r.ID] = answer
	return answer, c.writeLocked(wire.AppendRequest(nil, &r))
}

// write sends bytes as they are.
func (c *conn) write(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writeLocked(b)
}

func (c *conn) writeLocked(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(patience))
	_, err := c.nc.Write(b)
	return err
}

// ask sends a request and waits for its answer. An error says that nobody knows what became of it.
func (c *conn) ask(ctx context.Context, r wire.Request) (wire.Reply, error) {
	answer, err := c.begin(r)
	if err != nil {
		return wire.Reply{}, err
	}
	return c.wait(ctx, answer)
}

func (c *conn) wait(ctx context.Context, answer <-chan wire.Reply) (wire.Reply, error) {
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return wire.Reply{}, context.Cause(ctx)
	case <-c.gone:
	}
	select { // it may have been the last thing that came
	case r := <-answer:
		return r, nil
	default:
		return wire.Reply{}, net.ErrClosed
	}
}

func (c *conn) close() {
	c.nc.Close()
	<-c.gone
}

// watch closes a connection to a process that answers pings no more, until it ends.
func (c *conn) watch(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.gone:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		silent := time.Since(c.heard)
		c.mu.Unlock()
		if silent > 3*every {
			c.nc.Close()
			return
		}
		if _, err := c.begin(wire.Request{Op: wire.OpPing}); err != nil {
			c.nc.Close()
			return
		}
	}
}

// done asks the node for something that must be answered with this status.
func (n *node) done(c *conn, r wire.Request, want wire.Status) wire.Reply {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := c.ask(ctx, r)
	if err != nil || got.Status != want {
		n.t.Fatalf("%s answered %c %q with %c (%s, %v), want %c", n.name, r.Op, r.Key, got.Status, got.Message, err, want)
	}
	return got
}

func acquire(key string, lease time.Duration) wire.Request {
	return wire.Request{Op: wire.OpAcquire, Key: []byte(key), LeaseMS: uint32(lease.Milliseconds())}
}

func try(key string, lease time.Duration) wire.Request {
	r := acquire(key, lease)
	r.Flags = wire.FlagTry
	return r
}

func release(key string, token uint64) wire.Request {
	return wire.Request{Op: wire.OpRelease, Key: []byte(key), Token: token}
}

func extend(key string, token uint64, lease time.Duration) wire.Request {
	return wire.Request{Op: wire.OpExtend, Key: []byte(key), Token: token, LeaseMS: uint32(lease.Milliseconds())}
}
