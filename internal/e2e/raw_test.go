// Package e2e tests Holdfast from outside: whole servers over real sockets, by
// all the ways in at once.
package e2e

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"holdfast/wire"
)

// raw is a client of the native protocol that does nothing by itself.
type raw struct {
	t    *testing.T
	conn net.Conn
	in   []byte // received, not decoded yet
	id   uint32
}

// patience is how long anything may take before a test gives up: machines that
// run tests may stand still for seconds.
const patience = 20 * time.Second

// dial connects and says hello.
func dial(t *testing.T, addr string) *raw {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	c := &raw{t: t, conn: conn}
	t.Cleanup(func() { conn.Close() })
	c.send(wire.Request{Op: wire.OpHello, Version: wire.Version, Owner: []byte(t.Name())})
	if r := c.next(); r.Op != wire.OpHello || r.Status != wire.StatusWelcome {
		t.Fatalf("hello was answered %c %c %s", r.Op, r.Status, r.Message)
	}
	return c
}

func (c *raw) write(b []byte) {
	c.t.Helper()
	c.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// send sends one request under the next id, which it returns.
func (c *raw) send(r wire.Request) uint32 {
	c.t.Helper()
	c.id++
	r.ID = c.id
	c.write(wire.AppendRequest(nil, &r))
	return r.ID
}

// receive returns the next reply within limit; false if none came. A closed
// connection is io.EOF.
func (c *raw) receive(limit time.Duration) (wire.Reply, bool, error) {
	c.conn.SetReadDeadline(time.Now().Add(limit))
	for {
		var r wire.Reply
		n, err := r.Decode(c.in)
		if err != nil {
			return r, false, err
		}
		if n > 0 {
			r.Key = append([]byte(nil), r.Key...)
			r.Message = append([]byte(nil), r.Message...)
			c.in = c.in[n:]
			return r, true, nil
		}
		buf := make([]byte, 16<<10)
		n, err = c.conn.Read(buf)
		c.in = append(c.in, buf[:n]...)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			return wire.Reply{}, false, nil
		}
		if n == 0 && err != nil {
			return wire.Reply{}, false, io.EOF
		}
	}
}

// next returns the next reply; there must be one.
func (c *raw) next() wire.Reply {
	c.t.Helper()
	r, ok, err := c.receive(patience)
	if !ok {
		c.t.Fatalf("no reply: %v", err)
	}
	return r
}

// silent fails if anything comes within d.
func (c *raw) silent(d time.Duration) {
	c.t.Helper()
	if r, ok, err := c.receive(d); ok || err != nil {
		c.t.Fatalf("got %c %c %q (error %v), wanted silence", r.Op, r.Status, r.Key, err)
	}
}

// settle returns once the server has done all that was sent before: it answers
// a connection's requests in the order in which it reads them.
func (c *raw) settle() {
	c.t.Helper()
	c.send(wire.Request{Op: wire.OpPing})
	if r := c.answer(); r.Op != wire.OpPing {
		c.t.Fatalf("got %c %c %q (%s), wanted a pong", r.Op, r.Status, r.Key, r.Message)
	}
}

func acquire(key string, lease, wait time.Duration) wire.Request {
	return wire.Request{
		Op: wire.OpAcquire, Key: []byte(key),
		LeaseMS: uint32(lease / time.Millisecond), WaitMS: uint32(wait / time.Millisecond),
	}
}

func try(key string, lease time.Duration) wire.Request {
	r := acquire(key, lease, 0)
	r.Flags = wire.FlagTry
	return r
}

func release(key string, token uint64) wire.Request {
	return wire.Request{Op: wire.OpRelease, Key: []byte(key), Token: token}
}

// answer returns the next reply that is no push.
func (c *raw) answer() wire.Reply {
	c.t.Helper()
	for {
		if r := c.next(); r.Status != wire.StatusPush {
			return r
		}
	}
}

// ask sends a request and returns the next answer, which must be its.
func (c *raw) ask(r wire.Request) wire.Reply {
	c.t.Helper()
	id := c.send(r)
	got := c.answer()
	if got.ID != id || got.Op != r.Op {
		c.t.Fatalf("got the answer to %c %d, wanted %c %d", got.Op, got.ID, r.Op, id)
	}
	return got
}

// grant acquires what must be free.
func (c *raw) grant(key string, lease time.Duration) uint64 {
	c.t.Helper()
	r := c.ask(try(key, lease))
	if r.Status != wire.StatusGranted {
		c.t.Fatalf("acquire of %q was answered %c %s", key, r.Status, r.Message)
	}
	return r.Token
}

// reset closes the connection so that the peer gets a RST.
func (c *raw) reset() {
	c.conn.(*net.TCPConn).SetLinger(0)
	c.conn.Close()
}

func ticket() (t wire.Ticket) {
	rand.Read(t[:])
	return t
}
