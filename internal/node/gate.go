package node

import (
	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// gated is what one piece of work has to tell, once a standby has acknowledged
// the events that led to it.
type gated struct {
	at      replica.Position
	decided locks.Time
	fx      *locks.Effects
}

// gate holds replies back, in the order in which they were made: one that
// waits for nothing stays behind those of its connection that do. It is bounded
// by what the clients have pending, and by the suspicion time: with no standby
// left the machine opens it.
type gate struct {
	open  replica.Position // what is acknowledged
	queue []gated
	head  int
}

// holdsLocked says whether a reply that is made now has to wait.
func (n *Node) holdsLocked() bool {
	return n.acked && (n.gate.open.Less(n.machine.Position()) || n.gate.head < len(n.gate.queue))
}

// openGateLocked lets go what waits for no event after upto.
func (n *Node) openGateLocked(now locks.Time, upto replica.Position) {
	g := &n.gate
	g.open = upto
	for g.head < len(g.queue) && !upto.Less(g.queue[g.head].at) {
		one := g.queue[g.head]
		g.queue[g.head] = gated{}
		g.head++
		n.releaseLocked(now, one)
	}
	g.shrink()
}

// shrink gives the memory of what has gone to what comes.
func (g *gate) shrink() {
	switch {
	case g.head == len(g.queue):
		g.queue, g.head = g.queue[:0], 0
		if cap(g.queue) > keptGate {
			g.queue = nil
		}
	case g.head > len(g.queue)/2 && g.head > 256:
		n := copy(g.queue, g.queue[g.head:])
		clear(g.queue[n:])
		g.queue, g.head = g.queue[:n], 0
	}
}

// keptGate bounds the pieces of work for which an empty gate keeps its memory.
const keptGate = 1 << 12

// releaseLocked delivers the replies of one piece of work. Time has passed
// since they were made, and a session may be gone: then a grant was never told.
func (n *Node) releaseLocked(now locks.Time, one gated) {
	late := now.Sub(one.decided)
	for i := range one.fx.Replies {
		r := &one.fx.Replies[i]
		if r.Lease > 0 {
			r.Lease = max(r.Lease-late, 0)
		}
		n.tellLocked(r)
	}
	n.giveEffects(one.fx)
}

// emptyGateLocked turns what waits into "moved": its events may be known to no
// other node. Whoever asks there learns what became of it.
func (n *Node) emptyGateLocked() {
	g := &n.gate
	for _, one := range g.queue[g.head:] {
		for i := range one.fx.Replies {
			r := one.fx.Replies[i]
			if r.Op == 0 || r.Code == locks.Queued { // advice; and who waits is answered as such
				continue
			}
			r.Key = append([]byte(nil), r.Key...)
			r.Code, r.Lease, r.Waited = locks.Moved, 0, 0
			n.stranded = append(n.stranded, r)
		}
		n.giveEffects(one.fx)
	}
	*g = gate{open: g.open}
}
