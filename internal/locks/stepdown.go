package locks

import "slices"

// StepDown ends a reign: the node follows another from now on, and nobody is
// answered here any more. Waiters of sessions that are here are told Moved;
// those without a ticket were known to nobody else, and leave. What is left is
// what a follower knows: no claim is in a session's list, no grace runs.
func (t *Table) StepDown(fx *Effects) {
	t.reign.calm, t.reign.cursor = 0, 0
	fx.Replies = slices.Grow(fx.Replies, int(t.byRef.n))
	for i := range t.sessions {
		for t.sessions[i].list != 0 {
			t.letGo(t.sessions[i].list, fx)
		}
	}
	for cursor := uint32(1); cursor != 0 && t.graces > 0; {
		cursor = t.walk(cursor, func(_ uint32, k *entry) bool {
			t.stopGraces(k)
			return t.graces > 0
		})
	}
}

// letGo takes a claim out of its session.
func (t *Table) letGo(id uint32, fx *Effects) {
	c := t.claims.at(id)
	eid := c.entry
	if c.state == waiting && t.here(c.session) {
		t.tell(c, Moved, fx)
	}
	if c.state == holding || !c.ticket.IsZero() {
		t.moveTo(id, 0)
		return
	}
	t.ev = Event{Kind: EventDequeue, Key: t.keyOf(t.entries.at(eid)), Reason: ByDetach}
	t.commit(0, place{entry: eid, claim: id}, fx)
	t.dropIfEmpty(eid)
}

// stopGraces ends the graces of a key; with a grace goes the mark that it was
// given for.
func (t *Table) stopGraces(k *entry) {
	for _, id := range t.holdersOf(k) {
		if c := t.claims.at(id); c.grace != Never {
			c.session, c.undelivered = 0, false
			t.setGrace(id, Never)
		}
	}
	for id := k.qhead; id != 0; id = t.claims.at(id).next {
		t.setGrace(id, Never)
	}
}
