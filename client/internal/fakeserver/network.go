// Package fakeserver is a scripted lock server for the client's tests: it
// speaks the wire protocol over connections in memory, keeps locks well enough
// to be a partner, and misbehaves on request. It runs in a synctest bubble.
package fakeserver

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// Network connects dialers with servers by address.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*Server
	mode  map[string]Mode
	dials []Dialled
}

// Mode is how an address answers who dials it.
type Mode uint8

// The modes of an address. One without a server refuses.
const (
	Serving Mode = iota
	Refusing
	Dropping // as if every packet were lost: dialling hangs
	Deaf     // accepts and never answers
)

// Dialled is one attempt to connect.
type Dialled struct {
	Addr string
	At   time.Time
}

// NewNetwork returns a network without hosts.
func NewNetwork() *Network {
	return &Network{hosts: make(map[string]*Server), mode: make(map[string]Mode)}
}

// Add makes s serve addr.
func (w *Network) Add(addr string, s *Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[addr] = s
}

// Set changes how addr answers from now on.
func (w *Network) Set(addr string, m Mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode[addr] = m
}

// Dials returns every attempt so far.
func (w *Network) Dials() []Dialled {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Dialled(nil), w.dials...)
}

// Dial is a client.Dialer.
func (w *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	s, mode := w.hosts[addr], w.mode[addr]
	w.dials = append(w.dials, Dialled{Addr: addr, At: time.Now()})
	w.mu.Unlock()
	switch {
	case mode == Dropping:
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	case s == nil || mode == Refusing:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	s.accept(far, mode == Deaf)
	return near, nil
}

// Listen serves s on a real socket of this machine, for examples, until stop
// is called.
func (s *Server) Listen() (addr string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s.wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.accept(nc, false)
		}
	})
	return l.Addr().String(), func() {
		l.Close()
		s.CutAll()
		s.Wait()
	}
}
