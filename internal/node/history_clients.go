package node

import (
	"time"

	"holdfast/internal/locks"
)

// Client is an open session, for people who look.
type Client struct {
	Session locks.Session
	Origin  locks.Origin
	Since   time.Time
}

// clientPiece is how many slots are looked at under one hold of the mutex.
const clientPiece = 1000

// Clients lists the open sessions. While the list is made sessions come and go:
// one that did may be missing or present.
func (n *Node) Clients() []Client {
	var all []Client
	for at := 0; ; at += clientPiece {
		n.mu.Lock()
		slots := n.sessions.slots
		if at >= len(slots) {
			n.mu.Unlock()
			return all
		}
		for _, s := range slots[at:min(at+clientPiece, len(slots))] {
			if s != nil {
				all = append(all, Client{s.id, s.from, n.clock.wall(s.open)})
			}
		}
		n.mu.Unlock()
	}
}

// Frozen says whether the node is the active and grants nothing for the moment:
// it is handing over, or looking around after a pause.
func (n *Node) Frozen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.frozen && n.isActiveLocked()
}
