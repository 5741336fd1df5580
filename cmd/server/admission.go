package main

import (
	"net"
	"net/netip"
	"sync"
)

// admission bounds the connections of both ports together: a node that runs out of file descriptors or memory fails
// everyone, one that refuses the next client fails only that one.
type admission struct {
	// Static after construction.
	limit      int
	perAddress int // 0 = no bound

	mu    sync.Mutex // guards what follows
	total int
	from  map[netip.Addr]int // kept only while perAddress bounds something
}

func newAdmission(limit, perAddress int) *admission {
	return &admission{limit: limit, perAddress: perAddress, from: map[netip.Addr]int{}}
}

// admit counts a connection in, unless that would exceed a bound. The caller calls release once when the connection is
// gone.
func (a *admission) admit(remote netip.Addr) (release func(), ok bool) {
	remote = remote.Unmap()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.total >= a.limit || a.perAddress > 0 && a.from[remote] >= a.perAddress {
		return nil, false
	}
	a.total++
	if a.perAddress > 0 {
		a.from[remote]++
	}
	return func() { a.release(remote) }, true
}

func (a *admission) release(remote netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.perAddress == 0 {
		return
	}
	if a.from[remote]--; a.from[remote] == 0 {
		delete(a.from, remote) // else the map grows with every address that ever came
	}
}

// admitHTTP is admit for the HTTP port's listener.
func (a *admission) admitHTTP(remote net.Addr) (release func(), ok bool) {
	var addr netip.Addr
	if tcp, isTCP := remote.(*net.TCPAddr); isTCP {
		addr = tcp.AddrPort().Addr()
	}
	return a.admit(addr)
}
