package locks

import (
	"cmp"
	"slices"
)

// Merge takes over what another node knows and this one does not, after both
// were active. Other is a table folded from that node's snapshot, on this node's
// clock. What comes of it: the union of the standing grants without the tokens
// that ended on either side; where a key can't have them all, those of the highest
// tokens; its own queue first, then the other's. Everything goes through events,
// for followers to fold, and merging the same again brings about none.
//
// What is due here has happened before. Limits are not looked at: what others
// were promised is not taken back.
func (t *Table) Merge(now Time, other *Table, fx *Effects) {
	t.Hear(other.token(other.counter)) // whoever is served is above the grants that ran out there, too
	t.Advance(now, 0, fx)
	ended := other.ended.size() + t.ended.size()
	m := merger{t: t, other: other, now: now, fx: fx, ended: make(map[Token]uint8, ended), tickets: map[Ticket]struct{}{}}
	m.uniteEnded()
	for cursor := uint32(1); cursor != 0; {
		cursor = other.walk(cursor, func(_ uint32, theirs *entry) bool {
			m.key(theirs)
			return true
		})
	}
	for _, eid := range m.freed {
		if t.stands(eid) {
			t.serve(now, eid, t.due(now)+1, fx)
		}
	}
}

// stands says whether there is still a key of that number.
func (t *Table) stands(eid uint32) bool {
	return t.entries.chunks[eid>>chunkBits] != nil && t.entries.at(eid).keyLen != 0
}

// merger is one Merge on its way.
type merger struct {
	t, other *Table
	now      Time
	fx       *Effects
	ended    map[Token]uint8     // on which sides
	freed    []uint32            // keys on which a grant ended because it had ended there
	grants   []claimant          // of the key at hand
	tickets  map[Ticket]struct{} // that hold it already
}

// claimant is a grant of the key at hand, on either side.
type claimant struct {
	c     *claim
	id    uint32
	slots uint16
	ours  bool
}

// The sides on which a token ended.
const (
	endedHere  = 1
	endedThere = 2
)

// uniteEnded ends what ended there and adds to the set what is not in it. Only
// where something ended there can anything of ours have to go, and only then is
// the whole table looked at.
func (m *merger) uniteEnded() {
	theirs, ours := &m.other.ended, &m.t.ended
	for i := theirs.first; i < theirs.next; i++ {
		m.ended[*theirs.at(i)] = endedThere
	}
	if len(m.ended) > 0 {
		for cursor := uint32(1); cursor != 0; {
			cursor = m.t.walk(cursor, func(id uint32, k *entry) bool {
				m.endEnded(id, k)
				return true
			})
		}
	}
	for i := ours.first; i < ours.next; i++ {
		m.ended[*ours.at(i)] |= endedHere
	}
	for i := theirs.first; i < theirs.next; i++ {
		if token := *theirs.at(i); m.ended[token]&endedHere == 0 {
			m.note(token)
		}
	}
}

// endEnded ends the grants of a key that ended on the other node.
func (m *merger) endEnded(eid uint32, k *entry) {
	m.grants = m.grants[:0]
	m.t.eachHolder(k, func(id uint32, c *claim) bool {
		if m.ended[Token(c.id)] != 0 {
			m.grants = append(m.grants, claimant{c, id, k.slots, true})
		}
		return true
	})
	if len(m.grants) == 0 {
		return
	}
	m.t.wake(eid)
	slices.SortFunc(m.grants, highestFirst)
	for _, g := range m.grants {
		m.t.end(m.now, g.id, BySupersede, m.fx)
	}
	m.freed = append(m.freed, eid) // served when the other's grants are in
}

func highestFirst(a, b claimant) int { return cmp.Compare(b.c.id, a.c.id) }

// note adds a token of the other node to the ended set.
func (m *merger) note(token Token) {
	if token == 0 || !m.t.cfg.KeepEnded {
		return
	}
	m.ended[token] |= endedHere
	m.t.ev = Event{Kind: EventEnded, Token: token}
	m.t.commit(m.now, place{}, m.fx)
	m.t.boundEnded(m.fx)
}
