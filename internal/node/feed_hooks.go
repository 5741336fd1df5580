package node

import (
	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// What the feed is told, and from where. On the lock path, while nobody watches
// grants, that is one look at a counter for a batch, and one at a table for a reply.

// recordDueLocked sees to it that expiries are recorded as events on a node of
// its own, which needs them for nothing else.
func (n *Node) recordDueLocked(now locks.Time, fx *locks.Effects) {
	if !fx.Record && n.table.Next() <= now {
		fx.Record = true
	}
}

// feedEventsLocked tells of the events that this node has decided.
func (n *Node) feedEventsLocked(now locks.Time, events []locks.Event) {
	watched := n.feed.watched.Load() != 0
	for i := range events {
		switch ev := &events[i]; {
		case ev.Kind == locks.EventEnd:
			n.feedEndLocked(now, ev, watched)
		case ev.Kind == locks.EventGrant && watched:
			n.feedGrantLocked(now, ev)
		}
	}
}

// feedFollowedLocked tells of an event that another node has decided. While a
// snapshot replaces the state, events say what stands and not what happens.
func (n *Node) feedFollowedLocked(now locks.Time, t *locks.Table, ev *locks.Event) {
	if t != n.table || n.machine.Role() != replica.Standby {
		return
	}
	watched := n.feed.watched.Load() != 0
	switch {
	case ev.Kind == locks.EventEnd && ev.Reason == locks.ByForce:
		n.feed.add(n.feedAtLocked(now), Notice{Type: NoticeForced, Token: ev.Token}, ev.Key)
	case ev.Kind == locks.EventEnd:
		n.feedEndLocked(now, ev, watched)
	case ev.Kind == locks.EventGrant && watched:
		n.feedGrantLocked(now, ev)
	case ev.Kind == locks.EventDequeue && ev.Reason == locks.ByTimeout:
		n.feed.add(n.feedAtLocked(now), Notice{Type: NoticeTimeout}, ev.Key)
	case ev.Kind == locks.EventDequeue && ev.Reason == locks.ByRemoval:
		n.feed.add(n.feedAtLocked(now), Notice{Type: NoticeRemoved}, ev.Key)
	}
}

func (n *Node) feedGrantLocked(now locks.Time, ev *locks.Event) {
	one := Notice{Type: NoticeGrant, Token: ev.Token}
	if ev.Origin != nil {
		one.Owner = ev.Origin.Owner
	}
	n.feed.addTraffic(n.feedAtLocked(now), one, ev.Key)
}

// endings are the ends of a grant that are told whoever watches. Forced ones are
// told of by their answer: a node of its own does not record them.
var endings = map[locks.Reason]NoticeType{locks.ByExpiry: NoticeExpired, locks.BySupersede: NoticeSuperseded}

func (n *Node) feedEndLocked(now locks.Time, ev *locks.Event, watched bool) {
	if ev.Reason == locks.ByRelease && !watched {
		return
	}
	if kind, ok := endings[ev.Reason]; ok {
		n.tally.ended(ev.Reason)
		n.feed.add(n.feedAtLocked(now), Notice{Type: kind, Token: ev.Token}, ev.Key)
		return
	}
	if !watched {
		return
	}
	one := Notice{Type: NoticeRelease, Token: ev.Token}
	if ev.Reason != locks.ByRelease {
		one.Text = ev.Reason.String()
	}
	n.feed.addTraffic(n.feedAtLocked(now), one, ev.Key)
}

// noteworthy are the answers that the feed is told of.
var noteworthy = [256]bool{
	locks.NotGranted: true, locks.WaiterRemoved: true, locks.ForceDone: true, locks.LimitKeys: true, locks.LimitKeyBytes: true, locks.LimitWaiters: true,
	locks.LimitKeyWaiters: true, locks.LimitHolders: true, locks.LimitPending: true,
}

// feedReplyLocked tells of an answer.
func (n *Node) feedReplyLocked(now locks.Time, r *locks.Reply) {
	if noteworthy[r.Code] {
		n.feedOutcomeLocked(now, r)
	}
}

func (n *Node) feedOutcomeLocked(now locks.Time, r *locks.Reply) {
	one := Notice{Type: NoticeLimit, Text: r.Code.String()}
	switch {
	case r.Code == locks.NotGranted && r.Held: // TRY: nobody waited
		return
	case r.Code == locks.NotGranted:
		one = Notice{Type: NoticeTimeout}
	case r.Code == locks.ForceDone:
		one = Notice{Type: NoticeForced, Token: r.Token}
	case r.Code == locks.WaiterRemoved:
		one = Notice{Type: NoticeRemoved}
	}
	n.feed.add(n.feedAtLocked(now), one, r.Key)
}

// feedRoleLocked tells of a change of role.
func (n *Node) feedRoleLocked(a replica.RoleChanged) {
	n.feed.add(n.since, Notice{Type: NoticeRole, Role: roleOf(a.To), Text: a.Why.String()}, nil)
}

// factTypes are the types of the machine's facts; the others are NoticeCluster.
var factTypes = map[replica.Fact]NoticeType{
	replica.FactPeerUp: NoticePeer, replica.FactPeerDown: NoticePeer, replica.FactRefused: NoticePeer,
	replica.FactHandoff: NoticeHandoff, replica.FactHandoffEnded: NoticeHandoff, replica.FactPrepareEnded: NoticeHandoff,
	replica.FactTakeBack: NoticeHandoff, replica.FactTwoActives: NoticeTwoActives, replica.FactOtherActive: NoticeTwoActives,
	replica.FactOffer: NoticeMerge, replica.FactOfferTaken: NoticeMerge, replica.FactOfferEnded: NoticeMerge,
}

// feedFactLocked tells of a fact between the nodes.
func (n *Node) feedFactLocked(a replica.Note) {
	one := Notice{Type: factTypes[a.Fact], Text: a.Fact.String()}
	if one.Type == 0 {
		one.Type = NoticeCluster
	}
	if a.Peer != replica.Nobody {
		one.Node = n.nameLocked(a.Peer)
	}
	if a.Text != "" {
		one.Text += ": " + a.Text
	}
	n.feed.add(n.feedAtLocked(n.clock.now()), one, nil)
}
