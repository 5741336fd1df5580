package replica

import "math"

// hashing is the comparison of the state with the active's, at equal positions.
type hashing struct {
	next Time   // the active's: when the next one is due
	want uint64 // a follower's: what the active says
}

// hashMark is a hash on its way to a follower: it goes out when everything
// before its place in the log has.
type hashMark struct {
	on  bool
	at  cursor
	pos Position
	sum uint64
}

func (h *hashMark) due(c cursor) bool { return h.on && c == h.at }

// limit is where a read of the log must stop for the hash's sake.
func (h *hashMark) limit() int64 {
	if h.on {
		return h.at.index
	}
	return math.MaxInt64
}

// watchHash asks for the active's hash from time to time, while it has followers.
func (m *Machine) watchHash() {
	if m.role != Active || m.now < m.hash.next {
		return
	}
	m.hash.next = m.now.Add(hashPeriod)
	synced := false
	m.each(func(_ Rank, p *peer) { synced = synced || p.out.synced })
	if synced {
		m.act.do(HashState{For: HashPeriodic})
	}
}

// hashed takes in a hash of the state as it is at this position.
func (m *Machine) hashed(in StateHash) {
	switch in.For {
	case HashPeriodic:
		m.each(func(r Rank, p *peer) {
			if p.out.synced {
				p.out.hash = hashMark{true, m.log.head, m.pos, in.Hash}
				m.wake(r)
			}
		})
	case HashCompare:
		if m.follow.synced() && in.Hash != m.hash.want {
			m.mend()
		}
	case HashPrepare:
		m.sendPrepare(in.Hash)
	case HashPrepared:
		m.comparePrepared(in.Hash)
	}
}

// hashHeard is the active's hash, in the stream where it was taken.
func (m *Machine) hashHeard(r Rank, msg *Hash) {
	if m.from(r, msg.ID) && m.follow.phase == inStep && msg.Position == m.pos {
		m.hash.want = msg.Hash
		m.act.do(HashState{For: HashCompare})
	}
}

// mend replaces a state that is not what its position says.
func (m *Machine) mend() {
	m.follow.anew = true
	m.resync(FactHashDiffers, "")
}
