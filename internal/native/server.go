package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"holdfast/internal/node"
	"holdfast/wire"
)

// Server serves the native protocol on one listener.
type Server struct {
	// Static after construction.
	cfg      Config
	messages *messages
	log      *limiter
	refusals chan struct{} // places for connections that are being refused
	stop     chan struct{} // closed when no more are accepted
	active   func() node.ActiveNode

	wg      sync.WaitGroup // connections
	workers workers

	mu       sync.Mutex // guards what follows
	listener net.Listener
	conns    map[*conn]struct{}
	stopping ending // given to every connection; goesOn while the server serves. Once set, none is started
}

// refusalsAtOnce bounds the connections that are told that there are too many;
// above it they are closed without a word.
const refusalsAtOnce = 64

// New makes a server. Serve starts it.
func New(cfg Config) *Server {
	return &Server{
		cfg:      cfg,
		messages: newMessages(cfg.Node.Status().MaxLease, cfg.MaxPending),
		log:      newLimiter(cfg.Logger),
		refusals: make(chan struct{}, refusalsAtOnce),
		stop:     make(chan struct{}),
		active:   cfg.Node.Active,
		conns:    make(map[*conn]struct{}),
	}
}

// Serve accepts connections until ctx ends, Shutdown is called or the listener
// is closed, and returns when all its connections are gone. Only in the last
// case it returns an error. The end of ctx ends every connection at once. A
// server is served once. Its listener should not be one for multipath TCP, the
// default of package net: such sockets know fewer options.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	s.mu.Lock()
	s.listener = ln
	stopped := s.stopping != goesOn
	s.mu.Unlock()
	if stopped {
		ln.Close()
	}
	undo := context.AfterFunc(ctx, s.kill)
	defer undo()
	err := s.accept(ln)
	if err != nil {
		s.kill()
	}
	s.wg.Wait()
	s.workers.stop()
	return err
}

// Shutdown ends the server gracefully: nobody is accepted any more, every
// queued acquire is answered "moved" with the active's address if another node
// has taken over, every connection is told the same, and closed once its
// answers are written. It returns when all
// are gone; when ctx ends they are cut, and the error is its cause.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end(nodeStops)
	gone := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		s.kill()
		<-gone
		return fmt.Errorf("connections cut before their answers were written: %w", context.Cause(ctx))
	}
}

func (s *Server) kill() { s.end(killed) }

// end stops accepting and gives every connection a reason to end.
func (s *Server) end(why ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.stopping {
	case killed:
		return
	case goesOn:
		close(s.stop)
		if s.listener != nil {
			s.listener.Close()
		}
	}
	s.stopping = why
	for c := range s.conns {
		if why == killed {
			c.kill()
		} else {
			c.interrupt(why)
		}
	}
}

// stopped says whether the server was told to end.
func (s *Server) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// accept serves what connects. It outlives every error of a single accept, such
// as one for lack of file descriptors.
func (s *Server) accept(ln net.Listener) error {
	var wait time.Duration
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			wait = 0
			s.welcome(nc)
		case s.stopped():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept: %w", err)
		default:
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.log.limited(slog.LevelWarn, "accept failed, trying again", "err", err)
			select {
			case <-time.After(wait):
			case <-s.stop:
			}
		}
	}
}

// welcome starts a connection, or refuses it.
func (s *Server) welcome(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok {
		if err := setKeepalive(tc, s.cfg.Keepalive); err != nil {
			s.log.limited(slog.LevelWarn, "connection without keepalive", "remote", nc.RemoteAddr().String(), "err", err)
		}
	}
	release, ok := s.admit(nc)
	if !ok {
		s.refuse(nc)
		return
	}
	c := newConn(s, nc, release)
	c.in.deadline(time.Now().Add(s.cfg.HelloTimeout))
	s.start(c, c.serve)
}

// start runs a connection's life, unless the server has ended meanwhile.
func (s *Server) start(c *conn, life func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping != goesOn {
		c.nc.Close()
		c.release()
		return
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	go life()
}

func (s *Server) admit(nc net.Conn) (release func(), ok bool) {
	if s.cfg.Admit == nil {
		return func() {}, true
	}
	var remote netip.Addr
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		remote = a.AddrPort().Addr().Unmap()
	}
	return s.cfg.Admit(remote)
}

// refuse tells a connection that there are too many.
func (s *Server) refuse(nc net.Conn) {
	s.log.limited(slog.LevelWarn, "connection refused", "remote", nc.RemoteAddr().String(), "reason", notAdmitted.String())
	select {
	case s.refusals <- struct{}{}:
	default:
		nc.Close()
		return
	}
	c := newConn(s, nc, func() { <-s.refusals })
	c.last = wire.AppendReply(nil, &wire.Reply{
		Op: wire.OpError, Status: wire.StatusError, Code: wire.CodeLimit,
		Message: []byte("connections: the node stands at its limit (HOLDFAST_MAX_CONNECTIONS, HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS)"),
	})
	c.ending.Store(uint32(notAdmitted))
	s.start(c, func() { c.finish(notAdmitted) })
}

// gone notes that a connection has ended.
func (s *Server) gone(c *conn, why ending) {
	defer s.wg.Done()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	if why == outputFull {
		s.log.limited(slog.LevelWarn, "connection cut", "remote", c.remote, "reason", why.String())
		return
	}
	s.log.limited(slog.LevelDebug, "connection ended", "remote", c.remote, "reason", why.String())
}
