package locks

import "slices"

// key merges one key of the other node: first whoever has to go goes, so that
// a follower has room for every event that comes after.
func (m *merger) key(theirs *entry) {
	key := m.other.keyOf(theirs)
	at := place{hash: m.t.hashKey(key)}
	if at.entry = m.t.find(key, at.hash); at.entry != 0 {
		m.t.wake(at.entry)
	}
	m.collect(theirs, at.entry)
	kept := m.choose()
	at.entry = m.makeRoom(at.entry, kept)
	if m.takeIn(&at, theirs, kept) {
		m.t.tellHolders(m.t.entries.at(at.entry), m.fx)
	}
	if at.entry != 0 {
		m.t.serve(m.now, at.entry, m.t.due(m.now)+1, m.fx)
	}
}

// makeRoom takes off a key what can't stay, and returns its entry, 0 if
// nothing is left: then it may have other slots from now on.
func (m *merger) makeRoom(eid uint32, kept int) uint32 {
	if eid != 0 && kept > 0 {
		m.refuse(eid, m.grants[0].slots)
	}
	for _, g := range m.grants[kept:] {
		if g.ours {
			m.ended[Token(g.c.id)] |= endedHere
			m.t.end(m.now, g.id, BySupersede, m.fx)
		} else {
			m.note(Token(g.c.id))
		}
	}
	if eid == 0 || !m.t.bare(eid) {
		return eid
	}
	m.t.dropIfEmpty(eid)
	return 0
}

// takeIn takes over what is kept of the other's grants, and its waiters. It
// reports whether there was anything.
func (m *merger) takeIn(at *place, theirs *entry, kept int) (any bool) {
	for _, g := range m.grants[:kept] {
		if !g.ours {
			at.entry = m.grant(*at, theirs, g.c)
			any = true
		}
	}
	for id := theirs.qhead; id != 0; {
		c := m.other.claims.at(id)
		any = m.enqueue(at, theirs, c) || any
		id = c.next
	}
	return any
}

// bare says whether nothing stands on a key.
func (t *Table) bare(eid uint32) bool {
	k := t.entries.at(eid)
	return k.root == 0 && k.qhead == 0
}

// collect lists the grants of a key on both sides, the highest token first.
func (m *merger) collect(theirs *entry, eid uint32) {
	m.grants = m.grants[:0]
	if eid != 0 {
		k := m.t.entries.at(eid)
		m.t.eachHolder(k, func(id uint32, c *claim) bool {
			m.grants = append(m.grants, claimant{c, id, k.slots, true})
			return true
		})
	}
	m.other.eachHolder(theirs, func(id uint32, c *claim) bool {
		if m.ended[Token(c.id)] == 0 && c.deadline > m.now {
			m.grants = append(m.grants, claimant{c, id, theirs.slots, false})
		}
		return true
	})
	slices.SortStableFunc(m.grants, highestFirst)
	m.grants = slices.CompactFunc(m.grants, func(a, b claimant) bool {
		if a.c.id != b.c.id {
			return false
		}
		if a.ours {
			m.extend(a, b)
		} else {
			m.extend(b, a)
		}
		return true
	})
}

// extend lets a grant that stands on both sides keep the longer of its leases:
// it may have been extended on one side only.
func (m *merger) extend(ours, theirs claimant) {
	if ours.c.deadline >= theirs.c.deadline {
		return
	}
	m.t.ev = Event{Kind: EventExtend, Key: m.t.keyOf(m.t.entries.at(ours.c.entry)), Token: Token(ours.c.id),
		Lease: theirs.c.deadline.Sub(m.now)}
	m.t.commit(m.now, place{entry: ours.c.entry, claim: ours.id}, m.fx)
}

// choose moves the grants that stay to the front, those of the highest tokens
// first, and returns how many they are. The highest decides mode and slots; of
// one ticket the highest stays.
func (m *merger) choose() (kept int) {
	if len(m.grants) < 2 {
		return len(m.grants)
	}
	clear(m.tickets)
	top := m.grants[0]
	shared, room := top.c.flags&Shared, 1
	if top.slots > 1 {
		room = int(top.slots)
	} else if shared != 0 {
		room = MaxHolders
	}
	var rest []claimant
	for _, g := range m.grants {
		_, again := m.tickets[g.c.ticket]
		if kept == room || again || g.slots != top.slots || g.c.flags&Shared != shared {
			rest = append(rest, g)
			continue
		}
		if !g.c.ticket.IsZero() {
			m.tickets[g.c.ticket] = struct{}{}
		}
		m.grants[kept] = g
		kept++
	}
	copy(m.grants[kept:], rest)
	return kept
}

// refuse answers the waiters of a key that will have other slots from now on.
func (m *merger) refuse(eid uint32, slots uint16) {
	k := m.t.entries.at(eid)
	for k.slots != slots && k.qhead != 0 {
		m.mismatch(k.qhead, slots)
	}
}

// mismatch takes a waiter out that asked for another mode than its key has.
func (m *merger) mismatch(id uint32, slots uint16) {
	c := m.t.claims.at(id)
	if m.t.here(c.session) {
		m.t.tell(c, Mismatch, m.fx).Slots = slots
	}
	m.t.dequeue(m.now, id, BySupersede, m.fx)
}

// grant takes over a grant of the other node, and returns the key's entry. Its
// client is not connected here, unless it waits with the same ticket: then that
// is answered.
func (m *merger) grant(at place, theirs *entry, c *claim) uint32 {
	t := m.t
	at.claim = 0
	var w claim // as which it waits here
	if at.entry != 0 {
		at.claim = m.waiterOf(at.entry, theirs, c)
	}
	if at.claim != 0 {
		w = *t.claims.at(at.claim)
	}
	lease := c.deadline.Sub(m.now)
	t.ev = Event{Kind: EventGrant, Key: m.other.keyOf(theirs), Token: Token(c.id), Lease: lease,
		Slots: theirs.slots, Flags: c.flags, Ticket: c.ticket, Origin: m.other.origins.at(c.origin)}
	at = t.commit(m.now, at, m.fx)
	if t.here(w.session) {
		t.reclaim(at.claim, w.session)
		r := t.tell(&w, Granted, m.fx)
		r.Token, r.Lease, r.Waited = Token(c.id), lease, m.now.Sub(w.since)
		return at.entry
	}
	t.moveTo(at.claim, 0)
	m.disconnected(at.claim)
	return at.entry
}

// waiterOf finds the waiter here whose ticket holds there. One that asked for
// another mode has to go first.
func (m *merger) waiterOf(eid uint32, theirs *entry, c *claim) uint32 {
	id := m.t.findTicket(eid, c.ticket)
	if id != 0 && m.t.claims.at(id).flags&Shared != c.flags&Shared {
		m.mismatch(id, theirs.slots)
		return 0
	}
	return id
}

// disconnected gives a claim that came from the other node its grace.
func (m *merger) disconnected(id uint32) {
	grace := Never
	if c := m.t.claims.at(id); c.state == waiting || c.flags&Bound != 0 {
		grace = m.now.Add(m.t.cfg.ReattachGrace)
	}
	m.t.setGrace(id, grace)
}

// enqueue puts a waiter of the other node behind those here, unless its ticket
// stands already or it asks for another mode.
func (m *merger) enqueue(at *place, theirs *entry, c *claim) bool {
	t := m.t
	if c.ticket.IsZero() || c.deadline <= m.now || at.entry != 0 &&
		(t.entries.at(at.entry).slots != theirs.slots || t.findTicket(at.entry, c.ticket) != 0) {
		return false
	}
	t.ev = Event{Kind: EventEnqueue, Key: m.other.keyOf(theirs), Lease: c.leaseTime(), Slots: theirs.slots,
		Flags: c.flags, Ticket: c.ticket, Origin: m.other.origins.at(c.origin)}
	if c.deadline != Never {
		t.ev.Wait = c.deadline.Sub(m.now)
	}
	done := t.commit(m.now, place{hash: at.hash, entry: at.entry}, m.fx)
	at.entry = done.entry
	m.disconnected(done.claim)
	return true
}
