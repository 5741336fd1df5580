package locks

// session is one client of a front end. Its list holds the claims that must
// not outlive it unchanged: its waiters and its Bound grants. Other grants only
// carry its number, which never comes back.
type session struct {
	id       Session
	goneAt   Time   // when its client went; 0 = it is here
	list     uint32 // first claim
	waiters  uint32
	origin   uint32
	attached bool
}

// session returns the record of s, nil if there is none of that number.
func (t *Table) session(s Session) *session {
	slot := s.slot()
	if s == 0 || slot >= len(t.sessions) || t.sessions[slot].id != s || !t.sessions[slot].attached {
		return nil
	}
	return &t.sessions[slot]
}

// here says whether s has a client to answer.
func (t *Table) here(s Session) bool {
	r := t.session(s)
	return r != nil && r.goneAt == 0
}

func (t *Table) attach(c *Command) {
	slot := c.Session.slot()
	for len(t.sessions) <= slot {
		t.sessions = append(t.sessions, session{})
	}
	if t.sessions[slot].attached {
		panic("locks: session attached twice")
	}
	t.sessions[slot] = session{id: c.Session, origin: t.origins.keep(c.Origin), attached: true}
}

// detachPiece bounds the claims that one OpDetach takes out.
const detachPiece = 512

// detach ends a session, a piece at a time. From its first call on the session
// counts as gone, whatever still stands in its list.
func (t *Table) detach(now Time, c *Command, fx *Effects) {
	s := t.session(c.Session)
	if s == nil {
		return
	}
	if s.goneAt == 0 {
		s.goneAt = max(now, 1)
	}
	for range detachPiece {
		if s.list == 0 {
			t.origins.drop(s.origin)
			*s = session{}
			return
		}
		if eid := t.claims.at(s.list).entry; t.asleep(eid) {
			t.rouse(now, eid, fx) // it may be another's turn, or this one's end
			continue
		}
		t.disconnect(now, s.list, fx)
	}
	fx.More = true
}

// disconnect takes the client from a claim: an unticketed waiter leaves, a
// ticketed one and a Bound grant stay for the grace.
func (t *Table) disconnect(now Time, id uint32, fx *Effects) {
	c := t.claims.at(id)
	if c.state == waiting && c.ticket.IsZero() {
		t.leave(now, id, ByDetach, fx)
		return
	}
	grace := t.session(c.session).goneAt.Add(t.cfg.ReattachGrace)
	t.unlinkSession(id)
	if c.state == waiting {
		c.session = 0
	} // a holder keeps the number, by which its client may still say that it never got the grant
	t.setGrace(id, grace)
}

// moveTo gives a claim to another session, 0 for none.
func (t *Table) moveTo(id uint32, to Session) {
	c := t.claims.at(id)
	t.unlinkSession(id)
	c.session = to
	if to != 0 && (c.state == waiting || c.flags&Bound != 0) {
		t.linkSession(id)
	}
}

// setGrace starts, changes or (Never) ends the grace of a claim.
func (t *Table) setGrace(id uint32, until Time) {
	c := t.claims.at(id)
	if c.grace == until {
		return
	}
	if c.grace == Never {
		t.graces++
	} else if until == Never {
		t.graces--
	}
	c.grace = until
	t.setDeadline(id)
	if c.state == holding {
		t.moveHolder(t.entries.at(c.entry), id)
	}
}

// linkSession puts a claim into its session's list, a waiter into the index of
// pending requests too.
func (t *Table) linkSession(id uint32) {
	c := t.claims.at(id)
	s := t.session(c.session)
	if s == nil {
		return
	}
	c.linked = true
	c.snext, c.sprev = s.list, 0
	if s.list != 0 {
		t.claims.at(s.list).sprev = id
	}
	s.list = id
	if c.state == waiting {
		s.waiters++
		t.byRef.insert(id, t.hashRef(c.session, c.id))
	}
}

// unlinkSession undoes linkSession. A waiter that is about to be a holder must
// be unlinked before its state changes.
func (t *Table) unlinkSession(id uint32) {
	c := t.claims.at(id)
	if !c.linked {
		return
	}
	s := t.session(c.session)
	c.linked = false
	if c.sprev != 0 {
		t.claims.at(c.sprev).snext = c.snext
	} else {
		s.list = c.snext
	}
	if c.snext != 0 {
		t.claims.at(c.snext).sprev = c.sprev
	}
	c.snext, c.sprev = 0, 0
	if c.state == waiting {
		s.waiters--
		t.byRef.remove(id)
	}
}

// findRef returns the session's oldest waiter under ref, 0 if there is none.
func (t *Table) findRef(s Session, ref uint64) uint32 {
	for id := t.byRef.first(t.hashRef(s, ref)); id != 0; id = t.byRef.next(id) {
		if c := t.claims.at(id); c.session == s && c.id == ref {
			return id
		}
	}
	return 0
}
