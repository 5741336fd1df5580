package web

import (
	"context"
	"sync"
)

// sockets are the WebSockets of a server: net/http knows nothing of them any more.
type sockets struct {
	mu      sync.Mutex // guards what follows
	all     map[*socket]struct{}
	stopped bool
	none    chan struct{} // closed when the last has gone; nil: nobody waits for that
}

// add takes a socket in, unless the server has stopped.
func (v *sockets) add(c *socket) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopped {
		return false
	}
	if v.all == nil {
		v.all = make(map[*socket]struct{})
	}
	v.all[c] = struct{}{}
	return true
}

// ended says whether none is taken in any more.
func (v *sockets) ended() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stopped
}

func (v *sockets) remove(c *socket) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.all, c)
	if len(v.all) == 0 && v.none != nil {
		close(v.none)
		v.none = nil
	}
}

// end gives every socket a reason to end, and keeps others from beginning.
func (v *sockets) end(why wsEnding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopped = true
	for c := range v.all {
		if why == wsKilled {
			c.raw.Close()
		}
		c.end(why)
	}
}

// shutdown ends every socket and returns when all are gone. When ctx ends first
// it cuts what is left.
func (v *sockets) shutdown(ctx context.Context) {
	v.end(wsStops)
	v.mu.Lock()
	if len(v.all) == 0 {
		v.mu.Unlock()
		return
	}
	if v.none == nil {
		v.none = make(chan struct{})
	}
	none := v.none
	v.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
		v.end(wsKilled)
		<-none
	}
}
