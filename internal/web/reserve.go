package web

import (
	"net"
	"slices"
	"sync"
)

// reserved is how many connections are kept beyond the limit, to see whether
// they are peers: two for each, and as many again.
const reserved = 32

// reserve holds connections that Admit refused and that may be a peer's. Where
// it is full the oldest makes room: a peer needs its place until its first
// request is read only, so clients that hold on to theirs can't keep it out.
type reserve struct {
	mu    sync.Mutex // guards what follows
	conns []*admitted
}

// admit gives a connection its place.
func (v *reserve) admit(nc net.Conn) *admitted {
	c := &admitted{Conn: nc, onTrial: true}
	c.gone = func() { v.dismiss(c) }
	v.mu.Lock()
	var oldest *admitted
	if len(v.conns) == reserved {
		oldest = v.conns[0]
		v.conns = slices.Delete(v.conns, 0, 1)
	}
	v.conns = append(v.conns, c)
	v.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	return c
}

func (v *reserve) dismiss(c *admitted) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conns = slices.DeleteFunc(v.conns, func(other *admitted) bool { return other == c })
}
