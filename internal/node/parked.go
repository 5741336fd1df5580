package node

import "holdfast/internal/locks"

// parked is a batch that waits for the end of a freeze. Whoever brought it
// waits too, so nobody can park more than one batch a session, and what a batch
// points into stays as it is.
type parked struct {
	s     *Session
	batch []locks.Command // nil: the session is closed
	done  func()
}

// standing is what the node does with a request.
type standing uint8

const (
	serves standing = iota
	parks           // frozen, or it has handed over and does not know yet to whom: what comes has to wait
	moves           // another node is to be asked
)

// standingLocked says how a request that comes now is dealt with. The machine
// says no where its last tick is long ago, as after a pause of the process: it
// is told the time then, and asked again.
func (n *Node) standingLocked(now locks.Time) standing {
	switch {
	case n.left:
		return moves
	case n.machine.MayServe(machineTime(now)):
		return serves
	case n.isActiveLocked() && !n.frozen:
		n.stepLocked(now, tick)
		if n.machine.MayServe(machineTime(now)) {
			return serves
		}
	}
	if n.isActiveLocked() || n.lapsed {
		return parks
	}
	return moves
}

// submitLocked runs a batch at now, or parks it, and then returns false.
func (n *Node) submitLocked(now locks.Time, p parked) bool {
	switch n.standingLocked(now) {
	case serves:
		n.runLocked(now, p)
	case parks:
		n.parked = append(n.parked, p)
		return false
	case moves:
		n.moveLocked(now, p)
	}
	return true
}

// runLocked decides a batch.
func (n *Node) runLocked(now locks.Time, p parked) {
	fx := n.takeEffects()
	n.recordDueLocked(now, fx)
	n.table.Prefetch(p.batch)
	for i := range p.batch {
		c := &p.batch[i]
		c.Session = p.s.id
		n.table.Do(now, c, fx)
	}
	if p.batch == nil {
		n.detachLocked(now, p.s, fx)
	}
	n.settleLocked(now, fx)
}

// detachLocked takes a closed session, or a piece of it, out of the table.
func (n *Node) detachLocked(now locks.Time, s *Session, fx *locks.Effects) {
	n.table.Do(now, &locks.Command{Op: locks.OpDetach, Session: s.id}, fx)
	if !fx.More {
		s.closed = true
		n.sessions.free(s.id)
	}
}

// moveLocked answers a batch on a node that does not serve.
func (n *Node) moveLocked(now locks.Time, p parked) {
	fx := n.takeEffects()
	defer n.giveEffects(fx)
	if p.batch == nil {
		n.detachLocked(now, p.s, fx)
		return
	}
	for i := range p.batch {
		c := &p.batch[i]
		if c.Op == locks.OpUndelivered {
			continue // nobody asked: the grant stands for whoever has its ticket
		}
		n.countLocked(locks.Moved)
		n.pushLocked(p.s, &locks.Reply{To: p.s.id, Ref: c.Ref, Op: c.Op, Code: locks.Moved, Key: c.Key, Ticket: c.Ticket, Token: c.Token})
	}
}

// unparkLocked runs what was parked, in the order in which it came.
func (n *Node) unparkLocked(now locks.Time) {
	for len(n.parked) > 0 && n.standingLocked(now) == serves {
		p := n.parked[0]
		n.parked = n.parked[1:]
		n.runLocked(now, p)
		n.finishLocked(p)
	}
	if len(n.parked) == 0 {
		n.parked = nil
	}
}

// turnAwayLocked answers what was parked with where to go.
func (n *Node) turnAwayLocked(now locks.Time) {
	all := n.parked
	n.parked = nil
	for _, p := range all {
		n.moveLocked(now, p)
		n.finishLocked(p)
	}
}

func (n *Node) finishLocked(p parked) {
	if p.done != nil {
		p.done()
	}
}
