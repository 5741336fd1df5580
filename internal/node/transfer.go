package node

import (
	"fmt"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

func (c *Config) snapshotPiece() int {
	if c.Cluster != nil && c.Cluster.SnapshotPiece > 0 {
		return c.Cluster.SnapshotPiece
	}
	return 1000
}

// takeSnapshotLocked takes a piece of the state for a peer.
func (n *Node) takeSnapshotLocked(now locks.Time, a replica.TakeSnapshot) {
	fx := n.takeEffects()
	next := n.table.Snapshot(now, a.Cursor, n.piece, fx)
	n.chunk.begin()
	n.chunk.addAll(fx.Events)
	n.giveEffects(fx)
	n.stepLocked(now, replica.SnapshotChunk{Link: a.Link, Next: next, Run: n.chunk.run})
}

// stashLocked keeps a piece of a peer's state aside, as a table on this node's clock.
func (n *Node) stashLocked(now locks.Time, a replica.StashOffer) {
	if n.stash[a.Peer] == nil {
		n.stash[a.Peer] = locks.New(n.cfg.Table)
	}
	if t := n.stash[a.Peer]; overfull(t.Stats(), &n.cfg.Table) {
		return // what is here is merged; the rest was more than any node with these limits can have
	}
	n.applyLocked(now, n.stash[a.Peer], a.Run)
}

// overfull says whether a table has far more in it than limits allow: a peer
// that offers without end must not fill the memory. Twice, as a merge may have
// made more of it than the limits on new requests.
func overfull(st locks.Stats, limits *locks.Config) bool {
	return st.Keys > 2*limits.MaxKeys || st.KeyBytes > 2*limits.MaxKeyBytes || st.Waiters > 2*limits.MaxWaiters
}

// takeStash returns what a peer has offered.
func (n *Node) takeStash(r replica.Rank) *locks.Table {
	t := n.stash[r]
	n.stash[r] = nil
	if t == nil {
		panic(fmt.Sprintf("node: the state that node %d offered is not here", r))
	}
	return t
}

// mergeLocked merges a peer's state into this one.
func (n *Node) mergeLocked(now locks.Time, a replica.MergeOffer) {
	fx := n.takeEffects()
	n.table.Merge(now, n.takeStash(a.Peer), fx)
	n.replicateLocked(now, fx)
	n.deliverLocked(now, fx)
	n.stepLocked(now, replica.OfferMerged(a))
}

// adoptLocked replaces the state by a peer's. The sessions stay.
func (n *Node) adoptLocked(now locks.Time, a replica.AdoptOffer) {
	from := n.takeStash(a.Peer)
	fx := n.takeEffects()
	defer n.giveEffects(fx)
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = from.Snapshot(now, cursor, n.piece, fx)
		for i := range fx.Events {
			if !n.table.Apply(now, &fx.Events[i]) {
				n.misfits++
			}
		}
		fx.Reset()
	}
}

// endedMarks remembers how long the ended set was at some positions of this
// reign, so that it can be emptied up to what every peer has acknowledged.
type endedMarks struct{ list []endedMark }

type endedMark struct {
	seq  replica.Seq
	next uint64 // the ended set's end then
}

// note remembers the present length.
func (m *endedMarks) note(seq replica.Seq, first, next uint64) {
	drop := 0
	for drop < len(m.list) && m.list[drop].next <= first {
		drop++
	}
	m.list = m.list[:copy(m.list, m.list[drop:])]
	if last := len(m.list) - 1; next > first && (last < 0 || m.list[last].next < next) {
		m.list = append(m.list, endedMark{seq, next})
	}
}

// upto returns the length that every state at seq has reached at least.
func (m *endedMarks) upto(seq replica.Seq) (next uint64) {
	for _, one := range m.list {
		if one.seq > seq {
			break
		}
		next = one.next
	}
	return next
}

// trimLocked empties the ended set as far as no peer needs it.
func (n *Node) trimLocked(now locks.Time, at replica.Position) {
	next := n.ended.upto(at.Seq)
	if next == 0 {
		return
	}
	fx := n.takeEffects()
	n.table.TrimEnded(next, fx)
	n.replicateLocked(now, fx)
	n.giveEffects(fx)
}

// noteEndedLocked is called at every tick of an active.
func (n *Node) noteEndedLocked() {
	if n.cluster != nil && n.isActiveLocked() {
		first, next := n.table.Ended()
		n.ended.note(n.machine.Position().Seq, first, next)
	}
}
