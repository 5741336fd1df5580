// Package fakeserver is a partner for tests: just enough of a lock server, and
// a way to misbehave. What locks promise is tested against the real server.
package fakeserver

import (
	"cmp"
	"net"
	"sync"
	"testing"

	"holdfast/wire"
)

// Server knows exclusive locks without leases and waits without bound.
type Server struct {
	// Static once it serves.
	Hello wire.Reply // what it says of itself; NewServer's is that of an active
	// Intercept sees each request first; it returns true if it dealt with it.
	Intercept func(c *Conn, r *wire.Request) bool

	mu    sync.Mutex // guards what follows
	keys  map[string]*lock
	token uint64
	conns map[*Conn]bool
}

type lock struct {
	token uint64
	queue []waiter
}

type waiter struct {
	conn *Conn
	id   uint32
}

// Conn is a connection of a Server. Its methods may be called from Intercept.
type Conn struct {
	server *Server
	nc     net.Conn
}

// NewServer returns the active of a cluster of one, named "fake".
func NewServer() *Server {
	return &Server{
		Hello: wire.Reply{
			Op: wire.OpHello, Status: wire.StatusWelcome, Version: wire.Version, Role: wire.RoleActive,
			Node: []byte("fake"), MaxKey: wire.MaxKeyBytes, DefaultLeaseMS: 30_000, MaxLeaseMS: 86_400_000, Software: []byte("fake/1"),
		},
		keys: map[string]*lock{}, conns: map[*Conn]bool{},
	}
}

// Start serves on a free loopback port until the test ends.
func (s *Server) Start(t testing.TB) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return // closed
			}
			wg.Go(func() { s.Serve(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.CloseConns()
		wg.Wait()
	})
	return l.Addr().String()
}

// CloseConns cuts all connections.
func (s *Server) CloseConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.nc.Close()
	}
}

// Held counts the keys that are held.
func (s *Server) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}

// Serve serves one connection until it ends.
func (s *Server) Serve(nc net.Conn) {
	c := &Conn{server: s, nc: nc}
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		nc.Close()
	}()
	buf := make([]byte, 0, 64<<10)
	for {
		n, err := nc.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return
		}
		buf = buf[:len(buf)+n]
		for {
			var r wire.Request
			used, err := r.Decode(buf)
			if err != nil {
				return
			}
			if used == 0 {
				break
			}
			if s.Intercept == nil || !s.Intercept(c, &r) {
				s.do(c, &r)
			}
			buf = buf[:copy(buf, buf[used:])]
		}
	}
}

// Reply answers request r with the given reply's fields.
func (c *Conn) Reply(r *wire.Request, answer wire.Reply) {
	answer.Op, answer.ID, answer.Key = r.Op, r.ID, r.Key
	c.Send(answer)
}

// Send sends a frame as it is.
func (c *Conn) Send(frame wire.Reply) { c.nc.Write(wire.AppendReply(nil, &frame)) }

// Write sends bytes that need not be a frame.
func (c *Conn) Write(b string) { c.nc.Write([]byte(b)) }

// Close ends the connection.
func (c *Conn) Close() { c.nc.Close() }

func (s *Server) do(c *Conn, r *wire.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Op {
	case wire.OpHello:
		c.Reply(r, s.Hello)
	case wire.OpPing:
		c.Reply(r, wire.Reply{Status: wire.StatusPong})
	case wire.OpAcquire:
		s.acquire(c, r)
	case wire.OpRelease:
		s.release(c, r)
	case wire.OpExtend:
		if l := s.keys[string(r.Key)]; l != nil && l.token == r.Token {
			c.Reply(r, wire.Reply{Status: wire.StatusExtended, LeaseMS: r.LeaseMS})
		} else {
			c.Reply(r, wire.Reply{Status: wire.StatusNone})
		}
	case wire.OpCancel:
		c.Reply(r, wire.Reply{Status: wire.StatusNone})
	}
}

func (s *Server) acquire(c *Conn, r *wire.Request) {
	l := s.keys[string(r.Key)]
	switch {
	case l == nil:
		s.token++
		s.keys[string(r.Key)] = &lock{token: s.token}
		c.Reply(r, wire.Reply{Status: wire.StatusGranted, Token: s.token, LeaseMS: cmp.Or(r.LeaseMS, s.Hello.DefaultLeaseMS)})
	case r.Flags&wire.FlagTry != 0:
		c.Reply(r, wire.Reply{Status: wire.StatusNotGranted})
	default:
		l.queue = append(l.queue, waiter{c, r.ID})
	}
}

func (s *Server) release(c *Conn, r *wire.Request) {
	l := s.keys[string(r.Key)]
	if l == nil || l.token != r.Token {
		c.Reply(r, wire.Reply{Status: wire.StatusNone})
		return
	}
	if len(l.queue) == 0 {
		delete(s.keys, string(r.Key))
	} else {
		next := l.queue[0]
		l.queue = l.queue[1:]
		s.token++
		l.token = s.token
		next.conn.Send(wire.Reply{Op: wire.OpAcquire, Status: wire.StatusGranted, ID: next.id, Key: r.Key, Token: l.token, LeaseMS: s.Hello.DefaultLeaseMS})
	}
	c.Reply(r, wire.Reply{Status: wire.StatusReleased})
}
