package web

import (
	"net"
	"net/http"
	"sync"
)

// fresh keeps the connections on which no request has come yet. Clients open some ahead, and net/http's Shutdown would
// wait five seconds for the first request of each.
type fresh struct {
	mu      sync.Mutex // guards what follows
	conns   map[net.Conn]struct{}
	closing bool
}

// follow is http.Server.ConnState.
func (f *fresh) follow(nc net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state != http.StateNew {
		delete(f.conns, nc)
		return
	}
	if f.closing {
		nc.Close()
		return
	}
	if f.conns == nil {
		f.conns = make(map[net.Conn]struct{})
	}
	f.conns[nc] = struct{}{}
}

// close ends them, and those that come later.
func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closing = true
	for nc := range f.conns {
		nc.Close()
	}
}
