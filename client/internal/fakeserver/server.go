package fakeserver

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/wire"
)

// Server is one node. Its exported fields may be changed before it is added to
// a network; afterwards by its methods only.
type Server struct {
	Node       string
	Role       wire.Role
	Active     string // native address of the active, for the welcome and for M
	ActiveNode string
	Auth       string        // required in the hello, if not empty
	Latency    time.Duration // of each direction

	// Hook sees each request first; true means that it has dealt with it. It is
	// called for one request at a time and must not block.
	Hook func(c *Conn, r *wire.Request) (done bool)

	// Table holds the locks; servers of one cluster share it.
	Table *Table

	hookMu sync.Mutex // held while Hook runs

	mu       sync.Mutex // guards what follows and the exported fields
	conns    []*Conn
	requests []Request
	wg       sync.WaitGroup
}

// Request is one that was read.
type Request struct {
	wire.Request
	Conn int // the how manieth connection of the server it came on, from 0
	At   time.Time
}

// New returns an active node of its own.
func New(node string) *Server {
	return &Server{Node: node, Role: wire.RoleActive, Table: NewTable()}
}

// Conn is one accepted connection.
type Conn struct {
	Index int
	s     *Server
	nc    net.Conn
	in    chan timed[wire.Request]
	out   outbox
	gone  chan struct{} // closed when the connection ends
	wrote chan struct{} // closed when the last reply has been written or has failed
	once  sync.Once
	mute  atomic.Bool
}

// timed is something on its way until due.
type timed[T any] struct {
	due  time.Time
	what T
}

func (s *Server) accept(nc net.Conn, deaf bool) {
	c := &Conn{
		s: s, nc: nc, gone: make(chan struct{}), wrote: make(chan struct{}),
		in: make(chan timed[wire.Request], 256), out: outbox{filled: make(chan struct{}, 1)},
	}
	s.mu.Lock()
	c.Index = len(s.conns)
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	s.wg.Add(1)
	if deaf {
		go func() {
			defer s.wg.Done()
			io.Copy(io.Discard, nc)
			c.Cut()
		}()
		return
	}
	s.wg.Add(2)
	go c.read()
	go c.serve()
	go c.write()
}

// Cut ends the connection at once, whatever is under way.
func (c *Conn) Cut() {
	c.once.Do(func() {
		close(c.gone)
		c.nc.Close()
	})
}

// CutAll cuts every connection.
func (s *Server) CutAll() {
	for _, c := range s.Conns() {
		c.Cut()
	}
}

// Wait waits for the goroutines of connections that have ended.
func (s *Server) Wait() { s.wg.Wait() }

// Conns returns the connections that were accepted, dead ones included.
func (s *Server) Conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Conn(nil), s.conns...)
}

// Requests returns what was read so far, with op in ops (none = any but hellos and pings).
func (s *Server) Requests(ops ...wire.Op) (found []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		match := len(ops) == 0 && r.Op != wire.OpHello && r.Op != wire.OpPing
		for _, op := range ops {
			match = match || r.Op == op
		}
		if match {
			found = append(found, r)
		}
	}
	return found
}

// SetHook replaces Hook.
func (s *Server) SetHook(hook func(c *Conn, r *wire.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Hook = hook
}

// SetRole changes what the node is, without telling anybody.
func (s *Server) SetRole(role wire.Role, active, activeNode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Role, s.Active, s.ActiveNode = role, active, activeNode
}

// Demote makes the node a standby and tells everyone.
func (s *Server) Demote(active, activeNode string) {
	s.SetRole(wire.RoleStandby, active, activeNode)
	for _, c := range s.Conns() {
		s.Table.forget(c, true)
		c.Send(wire.Reply{Op: wire.OpMoved, Addr: []byte(active), Node: []byte(activeNode)})
	}
}

func (c *Conn) read() {
	defer c.s.wg.Done()
	defer close(c.in)
	defer c.Cut()
	buf := make([]byte, 0, 2*wire.MaxFrameBytes)
	for {
		var r wire.Request
		k, err := r.Decode(buf)
		if err != nil {
			return
		}
		if k > 0 {
			r = clone(r)
			buf = buf[:copy(buf, buf[k:])]
			c.s.note(c, &r)
			c.in <- timed[wire.Request]{time.Now().Add(c.s.Latency), r}
			continue
		}
		n, err := c.nc.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return
		}
		buf = buf[:len(buf)+n]
	}
}

func clone(r wire.Request) wire.Request {
	for _, b := range []*[]byte{&r.Key, &r.Auth, &r.Owner, &r.Software} {
		*b = append([]byte(nil), *b...)
	}
	return r
}

func (s *Server) note(c *Conn, r *wire.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{Request: *r, Conn: c.Index, At: time.Now()})
}

func (c *Conn) serve() {
	defer c.s.wg.Done()
	for t := range c.in {
		time.Sleep(time.Until(t.due))
		if !c.s.hooked(c, &t.what) {
			c.Answer(&t.what)
		}
	}
	<-c.wrote
	c.s.Table.forget(c, false)
}

func (s *Server) hooked(c *Conn, r *wire.Request) bool {
	s.mu.Lock()
	hook := s.Hook
	s.mu.Unlock()
	if hook == nil {
		return false
	}
	s.hookMu.Lock()
	defer s.hookMu.Unlock()
	return hook(c, r)
}

// Answer does what a well-behaved node does.
func (c *Conn) Answer(r *wire.Request) {
	s := c.s
	s.mu.Lock()
	role, active, activeNode := s.Role, s.Active, s.ActiveNode
	s.mu.Unlock()
	switch {
	case r.Op == wire.OpHello && s.Auth != string(r.Auth):
		c.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeUnauthenticated, Message: []byte("wrong auth token")})
	case r.Op == wire.OpHello:
		c.Reply(r, wire.Reply{
			Status: wire.StatusWelcome, Version: wire.Version, Role: role, Node: []byte(s.Node), Addr: []byte(active),
			ActiveNode: []byte(activeNode), MaxKey: wire.MaxKeyBytes, DefaultLeaseMS: 30_000, MaxLeaseMS: 86_400_000,
			Software: []byte("fake"),
		})
	case r.Op == wire.OpPing:
		c.Reply(r, wire.Reply{Status: wire.StatusPong})
	case r.Op == wire.OpCancel:
		s.Table.cancel(c, r)
	case role != wire.RoleActive:
		c.Reply(r, wire.Reply{Status: wire.StatusMoved, Addr: []byte(active), Node: []byte(activeNode)})
	case r.Op == wire.OpAcquire:
		s.Table.acquire(c, r)
	case r.Op == wire.OpRelease:
		s.Table.release(c, r)
	case r.Op == wire.OpExtend:
		s.Table.extend(c, r)
	}
}

// Reply answers r with what is set in reply.
func (c *Conn) Reply(r *wire.Request, reply wire.Reply) {
	reply.Op, reply.ID, reply.Key = r.Op, r.ID, r.Key
	c.Send(reply)
}

// Send sends a frame. It does not block.
func (c *Conn) Send(reply wire.Reply) {
	if !c.mute.Load() {
		c.out.put(timed[wire.Reply]{time.Now().Add(c.s.Latency), reply})
	}
}

func (c *Conn) write() {
	defer c.s.wg.Done()
	defer close(c.wrote)
	defer c.Cut()
	for {
		t, ok := c.out.take(c.gone)
		if !ok {
			return
		}
		time.Sleep(time.Until(t.due))
		if _, err := c.nc.Write(wire.AppendReply(nil, &t.what)); err != nil {
			return
		}
		if t.what.Op == wire.OpAcquire && t.what.Status == wire.StatusGranted {
			c.s.Table.delivered(t.what.Token)
		}
	}
}

// Alive says whether the connection stands.
func (c *Conn) Alive() bool {
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}

// Mute drops whatever would be sent from now on.
func (c *Conn) Mute() { c.mute.Store(true) }

// Raw writes bytes that need not be a frame, past the queue.
func (c *Conn) Raw(b []byte) { c.nc.Write(b) }
