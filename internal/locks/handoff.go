package locks

// settled does what is due on c's key by now and returns its entry, 0 if
// nothing stands on it (any more). It hashes the key if Prefetch has not. Of the waiters only those at the head of the queue
// are looked at: one further back that is due changes nothing for others, and
// is dealt with when it is named itself, comes to the head, or is swept.
func (t *Table) settled(now Time, c *Command, fx *Effects) uint32 {
	if !c.hashed {
		c.hash, c.hashed = t.hashKey(c.Key), true
	}
	eid := t.find(c.Key, c.hash)
	if eid != 0 && !t.settle(now, eid, fx) {
		return 0
	}
	return eid
}

// settle does it for an entry and reports whether anything still stands on it.
func (t *Table) settle(now Time, eid uint32, fx *Effects) bool {
	if t.asleep(eid) && !t.rouse(now, eid, fx) {
		return false
	}
	due := t.due(now)
	if t.deadlines.next() > due {
		return true
	}
	for {
		id := t.firstDue(eid, due)
		if id == 0 {
			return true
		}
		if !t.expire(now, id, fx) {
			return false
		}
	}
}

// firstDue returns the holder that ends first or the waiter at the head,
// whichever is over at due and first, 0 if neither is.
func (t *Table) firstDue(eid uint32, due Time) uint32 {
	k := t.entries.at(eid)
	id, q := k.root, k.qhead
	if q != 0 && t.claims.at(q).end() <= due && (id == 0 || t.endsBefore(t.claims.at(q), t.claims.at(id))) {
		return q
	}
	if id == 0 || t.claims.at(id).end() > due {
		return 0
	}
	return id
}

// expireIfDue ends claim id if its time has come, and says so.
func (t *Table) expireIfDue(now Time, id uint32, fx *Effects) bool {
	if t.claims.at(id).end() > t.due(now) {
		return false
	}
	t.expire(now, id, fx)
	return true
}

// expire ends a claim whose time came, at the instant when it did, and reports
// whether anything still stands on the key.
func (t *Table) expire(now Time, id uint32, fx *Effects) bool {
	c := t.claims.at(id)
	at := c.end()
	switch {
	case c.state == holding && c.undelivered && c.grace <= c.deadline:
		return t.endGrant(now, id, ByWithdrawal, at, fx)
	case c.state == holding:
		return t.endGrant(now, id, ByExpiry, at, fx)
	case c.deadline <= c.grace:
		return t.leaveAt(now, id, ByTimeout, at, fx)
	}
	return t.leaveAt(now, id, ByDetach, at, fx)
}

// endGrant ends a grant and hands the key to the next in line. freed bounds
// who that may be: a waiter whose own time ended before it is answered so.
// It reports whether anything still stands on the key.
func (t *Table) endGrant(now Time, id uint32, why Reason, freed Time, fx *Effects) bool {
	eid := t.claims.at(id).entry
	t.end(now, id, why, fx)
	return t.serve(now, eid, freed, fx)
}

// end ends a grant, tells its holder where that is not of its own doing, and
// leaves the key to the caller.
func (t *Table) end(now Time, id uint32, why Reason, fx *Effects) {
	c := t.claims.at(id)
	eid := c.entry
	k := t.entries.at(eid)
	if (why == ByExpiry || why == ByForce || why == BySupersede) && t.here(c.session) {
		r := fx.reply()
		r.To, r.Code, r.Reason, r.Token = c.session, Lost, why, Token(c.id)
		r.Key = fx.own(t.keyOf(k))
	}
	t.ev = Event{Kind: EventEnd, Key: t.keyOf(k), Token: Token(c.id), Reason: why}
	t.commit(now, place{entry: eid, claim: id}, fx)
	t.boundEnded(fx)
}

// leave takes a waiter out of the queue at a request's instant.
func (t *Table) leave(now Time, id uint32, why Reason, fx *Effects) bool {
	return t.leaveAt(now, id, why, t.due(now)+1, fx)
}

// leaveAt takes a waiter out of the queue, answers its request, and lets in
// whoever it kept out.
func (t *Table) leaveAt(now Time, id uint32, why Reason, at Time, fx *Effects) bool {
	eid := t.claims.at(id).entry
	t.dequeue(now, id, why, fx)
	return t.serve(now, eid, at, fx)
}

func (t *Table) dequeue(now Time, id uint32, why Reason, fx *Effects) {
	c := t.claims.at(id)
	if t.here(c.session) {
		switch why {
		case ByTimeout:
			t.tell(c, NotGranted, fx).Waited = now.Sub(c.since)
		case ByCancel, ByRemoval:
			t.tell(c, Cancelled, fx)
		case BySupersede:
			t.tell(c, Mismatch, fx)
		}
	}
	t.ev = Event{Kind: EventDequeue, Key: t.keyOf(t.entries.at(c.entry)), Ticket: c.ticket, Reason: why}
	t.commit(now, place{entry: c.entry, claim: id}, fx)
}

// serve grants the key to those at the head of the queue that it has room for,
// in order. It drops a key on which nothing stands any more, and reports
// whether anything does.
//
// freed is the instant from which the room exists: after a lease that ran out
// it may lie before now, and the first waiter that was still waiting then gets
// the key even if its wait ended since; one whose wait ended before is told so
// first. After a request it is just past now, since what is due at now comes
// before the request.
func (t *Table) serve(now Time, eid uint32, freed Time, fx *Effects) bool {
	k := t.entries.at(eid)
	for k.qhead != 0 {
		id := k.qhead
		c := t.claims.at(id)
		switch {
		case c.end() < freed:
			why := ByTimeout
			if c.grace < c.deadline {
				why = ByDetach
			}
			t.dequeue(now, id, why, fx)
		case c.session != 0 && !t.here(c.session) && c.ticket.IsZero():
			t.dequeue(now, id, ByDetach, fx) // its session is being taken apart
		case t.fits(k, c.flags&Shared):
			t.grantWaiter(now, id, fx)
		default:
			return true
		}
	}
	if k.root != 0 {
		return true
	}
	t.dropIfEmpty(eid)
	return false
}

// grantWaiter gives the key to a waiter. One whose client is away holds it
// undelivered, until its grace ends.
func (t *Table) grantWaiter(now Time, id uint32, fx *Effects) {
	c := t.claims.at(id)
	if c.session != 0 && !t.here(c.session) {
		t.disconnect(now, id, fx)
	}
	k := t.entries.at(c.entry)
	session, ref, waited := c.session, c.id, now.Sub(c.since)
	t.ev = Event{
		Kind: EventGrant, Key: t.keyOf(k), Token: t.nextToken(now), Lease: c.leaseTime(),
		Slots: k.slots, Flags: c.flags, Ticket: c.ticket, Origin: t.origins.at(c.origin),
	}
	token, lease := t.ev.Token, t.ev.Lease
	t.commit(now, place{entry: c.entry, claim: id}, fx)
	if session == 0 {
		c.undelivered = true
		return
	}
	t.moveTo(id, session)
	r := fx.reply()
	r.To, r.Ref, r.Op, r.Code, r.Ticket = session, ref, OpAcquire, Granted, c.ticket
	r.Key, r.Token, r.Lease, r.Waited = fx.own(t.keyOf(k)), token, lease, waited
	t.tellContended(id, fx)
}

// tellContended tells a holder that asked for it how many wait for its key.
func (t *Table) tellContended(id uint32, fx *Effects) {
	c := t.claims.at(id)
	k := t.entries.at(c.entry)
	if c.flags&Contended == 0 || k.waiters == 0 || !t.here(c.session) {
		return
	}
	r := fx.reply()
	r.To, r.Code, r.Token, r.Waiters = c.session, ContendedPush, Token(c.id), k.waiters
	r.Key = fx.own(t.keyOf(k))
}
