package node

import (
	"errors"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// Links takes what the machine has to say to other nodes: it carries out the
// actions Send, Wake, CloseLink and Redial, and reports false for any other.
// Push is called under the node's mutex: it must not block and not call back.
type Links interface {
	Push(a replica.Action) bool
}

// tick is an input: the time alone.
var tick = replica.Input(replica.Tick{})

func machineTime(t locks.Time) replica.Time { return replica.Time(t) }

// Step takes in what happened on the links.
func (n *Node) Step(in replica.Input) {
	now := n.lock()
	n.stepLocked(now, in)
	n.refreshLocked()
	n.watchLeapLocked()
	n.unlock(nil, nil)
}

// stepLocked feeds the machine and does what it asks for. What it asks for may
// feed it again, so each level has actions of its own.
func (n *Node) stepLocked(now locks.Time, in replica.Input) {
	act := n.takeActions()
	n.machine.Step(machineTime(now), in, act)
	for _, a := range act.List {
		if n.links == nil || !n.links.Push(a) {
			n.carryOutLocked(now, a)
		}
	}
	act.Reset()
	n.actions = append(n.actions, act)
}

func (n *Node) takeActions() *replica.Actions {
	if last := len(n.actions) - 1; last >= 0 {
		act := n.actions[last]
		n.actions = n.actions[:last]
		return act
	}
	return new(replica.Actions)
}

// carryOutLocked does one thing that the machine asks of the state's owner.
func (n *Node) carryOutLocked(now locks.Time, a replica.Action) {
	switch a := a.(type) {
	case replica.BecomeActive:
		n.becomeActiveLocked(now, a)
	case replica.NewReign:
		n.newReignLocked(now, a)
	case replica.BecomeStandby:
		n.becomeStandbyLocked()
	case replica.Moved:
		n.movedLocked(now)
	case replica.Freeze:
		n.frozen = true
	case replica.Unfreeze:
		n.frozen = false
		n.unparkLocked(now)
	case replica.HearToken:
		n.table.Hear(locks.Token(a.Token))
	case replica.Apply:
		n.applyLocked(now, n.table, a.Run)
	case replica.TakeSnapshot:
		n.takeSnapshotLocked(now, a)
	case replica.StashOffer:
		n.stashLocked(now, a)
	case replica.MergeOffer:
		n.mergeLocked(now, a)
	case replica.AdoptOffer:
		n.adoptLocked(now, a)
	case replica.DropOffer:
		n.stash[a.Peer] = nil
	case replica.HashState:
		n.stepLocked(now, replica.StateHash{For: a.For, Hash: n.table.Sum()})
	case replica.ReleaseGate:
		n.openGateLocked(now, a.Position)
	case replica.TrimEnded:
		n.trimLocked(now, a.Position)
	case replica.RoleChanged:
		n.roleChangedLocked(a)
	case replica.Note:
		n.noteLocked(a)
	case replica.PeerKnown:
		n.peerKnownLocked(a)
	case replica.Exit:
		n.exitLocked(a)
	}
}

// becomeActiveLocked begins a reign.
func (n *Node) becomeActiveLocked(now locks.Time, a replica.BecomeActive) {
	fx := n.takeEffects()
	epoch := n.table.Activate(now, n.floorLocked(a.Heard, a.Gap), fx)
	n.ended = endedMarks{}
	n.rousing, n.lapsed = true, false
	n.gate.open = replica.Position{}
	n.reignLocked(now, epoch, fx)
	n.giveEffects(fx)
	n.sendAwayLocked(n.takeStranded()) // it is active again before it could tell them where to go: they ask again
	n.unparkLocked(now)
}

func (n *Node) newReignLocked(now locks.Time, a replica.NewReign) {
	fx := n.takeEffects()
	epoch := n.table.Reign(now, n.floorLocked(a.Heard, a.Gap), fx)
	n.ended = endedMarks{}
	n.reignLocked(now, epoch, fx)
	n.giveEffects(fx)
}

// floorLocked is what a reign's tokens must be above.
func (n *Node) floorLocked(heard, gap replica.Token) locks.Token {
	return max(locks.Token(heard), n.table.Stats().Highest) + locks.Token(gap)
}

// reignLocked tells the machine that the epoch's token is taken.
func (n *Node) reignLocked(now locks.Time, epoch locks.Token, fx *locks.Effects) {
	n.epoch = epoch
	n.enc.begin()
	if fx.Record {
		n.observeLocked(replica.Position{Epoch: replica.Epoch(epoch), Seq: 1}, fx.Events)
		n.enc.addAll(fx.Events)
	} else { // a cluster of one has no use for the rest
		n.enc.add(&locks.Event{Kind: locks.EventEpoch, Token: epoch})
	}
	clear(fx.Events)
	fx.Events = fx.Events[:0]
	n.stepLocked(now, replica.Activated{Epoch: replica.Epoch(epoch), Run: n.enc.run})
}

// becomeStandbyLocked ends the reign. Those who wait are told when it is known
// where to go.
func (n *Node) becomeStandbyLocked() {
	n.frozen, n.lapsed, n.rousing = false, true, false
	n.emptyGateLocked()
	n.stepDownLocked()
}

// stepDownLocked makes a follower's table of the active's.
func (n *Node) stepDownLocked() {
	fx := n.takeEffects()
	n.table.StepDown(fx)
	for i := range fx.Replies {
		r := fx.Replies[i]
		r.Key = append([]byte(nil), r.Key...)
		n.stranded = append(n.stranded, r)
	}
	n.giveEffects(fx)
}

// movedLocked answers everything that is parked, pending and queued with where
// to go, and tells every session.
func (n *Node) movedLocked(now locks.Time) {
	if n.isActiveLocked() { // it stops, and there is nobody to hand over to
		n.left = true
		n.emptyGateLocked()
		n.stepDownLocked()
	}
	n.lapsed = false
	n.refreshLocked()
	n.sendAwayLocked(n.takeStranded())
	n.turnAwayLocked(now)
	for _, s := range n.sessions.slots {
		if s != nil {
			n.pushLocked(s, &locks.Reply{To: s.id, Code: locks.Moved})
		}
	}
}

func (n *Node) takeStranded() []locks.Reply {
	all := n.stranded
	n.stranded = nil
	return all
}

func (n *Node) sendAwayLocked(all []locks.Reply) {
	for i := range all {
		n.countLocked(locks.Moved)
		if s := n.sessions.get(all[i].To); s != nil {
			n.pushLocked(s, &all[i])
		}
	}
}

// exitLocked ends the node's part: whoever started it sees to the rest.
func (n *Node) exitLocked(a replica.Exit) {
	n.left = true
	n.turnAwayLocked(n.clock.now())
	n.refreshLocked()
	if a.Fault {
		select {
		case n.failed <- errors.New(a.Why):
		default: // it has failed before
		}
	}
	n.exitOnce.Do(func() { close(n.exited) })
}
