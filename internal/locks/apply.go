package locks

// place is what the decider knows of where an event belongs, so that folding
// it need not look it up again. Zero fields are unknown, or do not exist yet.
type place struct {
	hash   uint32 // of the key, where entry is 0
	entry  uint32
	claim  uint32
	origin uint32
}

// commit folds t.ev into the state and records it: the only way in which the
// active changes what is replicated. It returns where the event ended up.
func (t *Table) commit(now Time, at place, fx *Effects) place {
	at = t.fold(now, &t.ev, at)
	if t.ev.local() {
		return at
	}
	fx.Seq++
	if fx.Record {
		e := t.ev
		e.Key = fx.own(e.Key)
		if e.Origin != nil { // the command's is lent
			e.Origin = t.origins.at(t.claims.at(at.claim).origin)
		}
		fx.Events = append(fx.Events, e)
	}
	return at
}

// local says whether e concerns this node only: the queue's places without a
// ticket end with their connection, and no other node needs to know them.
func (e *Event) local() bool {
	return (e.Kind == EventEnqueue || e.Kind == EventDequeue) && e.Ticket.IsZero()
}

// Apply folds one event of another node's stream or snapshot into the state.
// It reports false, and changes nothing, for an event that does not fit: an
// unknown key, token or ticket, a grant that stands already, or one that the
// key has no room for. Only the token of an end is recorded all the same: a
// follower in the middle of a snapshot has to know that it must not come back.
func (t *Table) Apply(now Time, e *Event) bool {
	at := place{hash: t.hashKey(e.Key)}
	at.entry = t.find(e.Key, at.hash)
	switch e.Kind {
	case EventEpoch:
		// It concerns no key.
	case EventClear, EventEnded, EventTrim:
		if t.cfg.KeepEnded && !t.ended.takes(e) {
			return false
		}
	case EventGrant:
		if !e.wellFormed() || e.Token == 0 || at.entry != 0 && !t.admits(&at, e) {
			return false
		}
	case EventEnqueue:
		if !e.wellFormed() || e.Ticket.IsZero() || at.entry != 0 &&
			(t.findTicket(at.entry, e.Ticket) != 0 || t.entries.at(at.entry).slots != e.Slots) {
			return false
		}
	case EventExtend:
		if at.entry == 0 || e.Lease < 0 {
			return false
		}
		if at.claim = t.findHolder(at.entry, e.Token); at.claim == 0 {
			return false
		}
	case EventEnd:
		if at.entry != 0 {
			at.claim = t.findHolder(at.entry, e.Token)
		}
		if at.claim == 0 {
			t.fold(now, e, place{})
			return false
		}
	case EventDequeue:
		if at.entry == 0 {
			return false
		}
		if at.claim = t.findWaiter(at.entry, e.Ticket); at.claim == 0 {
			return false
		}
	case EventReset:
		if at.entry == 0 {
			return true
		}
	default:
		return false
	}
	at = t.fold(now, e, at)
	if e.Kind == EventEnd || e.Kind == EventDequeue {
		t.dropIfEmpty(at.entry)
	}
	return true
}

// wellFormed says whether e could make a claim.
func (e *Event) wellFormed() bool {
	return len(e.Key) > 0 && len(e.Key) <= MaxKeyLength && e.Slots > 0 && (e.Slots == 1 || e.Flags&Shared == 0) &&
		e.Lease >= 0 && e.Wait >= 0
}

// admits says whether the key has room for the grant e, and finds the waiter
// that gets it.
func (t *Table) admits(at *place, e *Event) bool {
	k, flags := t.entries.at(at.entry), e.Flags
	if at.claim = t.findTicket(at.entry, e.Ticket); at.claim != 0 {
		c := t.claims.at(at.claim)
		if c.state == holding {
			return false
		}
		flags = c.flags
	}
	return k.slots == e.Slots && t.fits(k, flags&Shared) && t.findHolder(at.entry, e.Token) == 0
}

// findWaiter returns the waiter of key with that ticket, 0 if there is none.
func (t *Table) findWaiter(eid uint32, ticket Ticket) uint32 {
	id := t.findTicket(eid, ticket)
	if id == 0 || t.claims.at(id).state != waiting {
		return 0
	}
	return id
}

// fold is the one place where events change the state, on the active and on
// its followers.
func (t *Table) fold(now Time, e *Event, at place) place {
	switch e.Kind {
	case EventEpoch:
		t.Hear(e.Token)
	case EventGrant:
		t.Hear(e.Token)
		if at.entry == 0 {
			at.entry = t.newEntry(e.Key, at.hash, e.Slots)
		}
		if at.claim == 0 {
			at.claim = t.newClaim(e, at)
		} else {
			t.unqueue(at.claim)
		}
		t.hold(now, e, at)
	case EventExtend:
		c := t.claims.at(at.claim)
		c.deadline = now.Add(e.Lease)
		t.setDeadline(at.claim)
		t.moveHolder(t.entries.at(at.entry), at.claim)
	case EventEnd:
		if at.claim != 0 {
			t.unhold(at)
		}
	case EventEnqueue:
		if at.entry == 0 {
			at.entry = t.newEntry(e.Key, at.hash, e.Slots)
		}
		at.claim = t.newClaim(e, at)
		t.queue(now, e, at)
	case EventDequeue:
		t.unqueue(at.claim)
		t.freeClaim(at.claim)
	case EventClear:
		t.forgetAll()
	case EventReset:
		t.forgetKey(at.entry)
	case EventEnded:
		t.Hear(e.Token)
	}
	if t.cfg.KeepEnded {
		t.ended.fold(e)
	}
	return at
}

// newClaim makes a claim that is neither waiter nor holder yet. Its session is
// none: whoever has one links it afterwards.
func (t *Table) newClaim(e *Event, at place) uint32 {
	id := t.claims.alloc()
	c := t.claims.at(id)
	c.entry, c.ticket, c.flags, c.grace = at.entry, e.Ticket, e.Flags, Never
	c.lease = millis(e.Lease)
	if at.origin != 0 {
		c.origin = t.origins.again(at.origin)
	} else {
		c.origin = t.origins.keep(e.Origin)
	}
	return id
}

func (t *Table) freeClaim(id uint32) {
	t.clearDeadline(id)
	c := t.claims.at(id)
	if c.grace != Never {
		t.graces--
	}
	t.origins.drop(c.origin)
	t.claims.release(id)
}

// hold makes a claim a holder.
func (t *Table) hold(now Time, e *Event, at place) {
	c, k := t.claims.at(at.claim), t.entries.at(at.entry)
	c.state, c.id, c.since = holding, uint64(e.Token), now
	c.deadline = now.Add(e.Lease)
	t.setDeadline(at.claim)
	t.addHolder(k, at.claim)
	t.sum += k.ofGrant(c)
	if !k.many(c) {
		return
	}
	t.byToken.insert(at.claim, t.hashToken(e.Token))
	if !c.ticket.IsZero() {
		t.byTicket.insert(at.claim, t.hashTicket(at.entry, c.ticket))
	}
}

// unhold ends a holder.
func (t *Table) unhold(at place) {
	c, k := t.claims.at(at.claim), t.entries.at(at.entry)
	t.sum -= k.ofGrant(c)
	if k.many(c) {
		t.byToken.remove(at.claim)
		if !c.ticket.IsZero() {
			t.byTicket.remove(at.claim)
		}
	}
	t.unlinkSession(at.claim)
	t.removeHolder(k, at.claim)
	t.freeClaim(at.claim)
}

// queue puts a claim at the end of its key's queue.
func (t *Table) queue(now Time, e *Event, at place) {
	c, k := t.claims.at(at.claim), t.entries.at(at.entry)
	c.state, c.since, c.deadline = waiting, now, Never
	if e.Wait > 0 {
		c.deadline = now.Add(e.Wait)
	}
	c.prev = k.qtail
	if k.qtail == 0 {
		k.qhead = at.claim
	} else {
		tail := t.claims.at(k.qtail)
		tail.next = at.claim
		c.child = tail.child + 1
	}
	k.qtail = at.claim
	k.waiters++
	t.waiters++
	t.setDeadline(at.claim)
	t.sum += k.ofWaiter(c)
	if !c.ticket.IsZero() {
		t.byTicket.insert(at.claim, t.hashTicket(at.entry, c.ticket))
	}
}

// unqueue takes a claim out of its key's queue and its session's list; it is
// neither waiter nor holder then.
func (t *Table) unqueue(id uint32) {
	c := t.claims.at(id)
	k := t.entries.at(c.entry)
	t.unlinkSession(id)
	t.sum -= k.ofWaiter(c)
	if !c.ticket.IsZero() {
		t.byTicket.remove(id)
	}
	if c.prev == 0 {
		k.qhead = c.next
	} else {
		t.claims.at(c.prev).next = c.next
	}
	if c.next == 0 {
		k.qtail = c.prev
	} else {
		t.claims.at(c.next).prev = c.prev
	}
	c.next, c.prev, c.child = 0, 0, 0
	c.state = unused
	k.waiters--
	t.waiters--
}
