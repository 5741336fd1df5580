package node

import (
	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// settleLocked finishes what one piece of work has brought about, and takes fx:
// its events go into the log first, then its replies to whom they are for.
func (n *Node) settleLocked(now locks.Time, fx *locks.Effects) {
	n.catchUpLocked(now, fx)
	n.replicateLocked(now, fx)
	n.deliverLocked(now, fx)
}

// replicateLocked gives the events of fx to the machine.
func (n *Node) replicateLocked(now locks.Time, fx *locks.Effects) {
	n.feedEventsLocked(now, fx.Events)
	if n.cluster == nil {
		n.alone += fx.Seq
		fx.Seq = 0
		return
	}
	if len(fx.Events) == 0 {
		return
	}
	at := n.machine.Position()
	at.Seq++
	n.observeLocked(at, fx.Events)
	n.enc.begin()
	n.enc.addAll(fx.Events)
	clear(fx.Events) // they point to origins
	fx.Events = fx.Events[:0]
	n.stepLocked(now, replica.Events{Run: n.enc.run, Highest: n.highestLocked()})
}

func (n *Node) observeLocked(first replica.Position, events []locks.Event) {
	if n.cfg.Observe != nil {
		n.cfg.Observe(first, events)
	}
}

// highestLocked is the highest token that the state has taken or heard.
func (n *Node) highestLocked() replica.Token { return replica.Token(n.table.Stats().Highest) }

// deliverLocked pushes the replies of fx, or keeps them at the gate. It takes fx.
func (n *Node) deliverLocked(now locks.Time, fx *locks.Effects) {
	for i := range fx.Replies {
		n.countLocked(fx.Replies[i].Code)
		n.feedReplyLocked(now, &fx.Replies[i])
		n.tally.add(&fx.Replies[i])
	}
	if len(fx.Replies) > 0 && n.holdsLocked() {
		n.gate.queue = append(n.gate.queue, gated{n.machine.Position(), now, fx})
		return
	}
	for i := range fx.Replies {
		n.tellLocked(&fx.Replies[i])
	}
	n.giveEffects(fx)
}

// tellLocked gives a reply to whom it is for. Where that session is closing, a
// grant has come too late: it is withdrawn before the mutex is free.
func (n *Node) tellLocked(r *locks.Reply) {
	if s := n.sessions.get(r.To); s != nil {
		n.pushLocked(s, r)
	} else if r.Code == locks.Granted && r.Op == locks.OpAcquire {
		key := append([]byte(nil), r.Key...)
		n.untold = append(n.untold, locks.Command{Op: locks.OpUndelivered, Session: r.To, Key: key, Token: r.Token})
	}
}

// pushLocked gives a reply to its session, which is flushed once the mutex is free.
func (n *Node) pushLocked(s *Session, r *locks.Reply) {
	if s.touched != n.batch {
		s.touched = n.batch
		n.touched = append(n.touched, s)
	}
	s.sink.Push(r)
}

func (n *Node) countLocked(c locks.Code) { n.counts[c]++ }

// takeEffects returns empty effects; giveEffects takes them back. More than one
// are in use while an answer of the machine leads to more work.
func (n *Node) takeEffects() *locks.Effects {
	if last := len(n.effects) - 1; last >= 0 {
		fx := n.effects[last]
		n.effects = n.effects[:last]
		fx.Record = n.cluster != nil || n.feed.watched.Load() != 0
		return fx
	}
	return &locks.Effects{Record: n.cluster != nil || n.feed.watched.Load() != 0}
}

func (n *Node) giveEffects(fx *locks.Effects) {
	fx.Reset()
	if len(n.effects) < keptEffects {
		n.effects = append(n.effects, fx)
	}
}

// keptEffects bounds the memory that is kept: a gate that was full gives its back.
const keptEffects = 64

// applyLocked folds another node's events into a table.
func (n *Node) applyLocked(now locks.Time, t *locks.Table, run []byte) {
	misfits := 0
	misfits += n.dec.eachEvent(run, func(ev *locks.Event) {
		if !t.Apply(now, ev) {
			misfits++
			return
		}
		n.feedFollowedLocked(now, t, ev)
	})
	n.misfits += uint64(misfits)
}
