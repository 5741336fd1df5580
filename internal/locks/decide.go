package locks

// Do decides one request at now and appends what it brings about to fx. Times
// must not go back from call to call.
//
// Whatever fell due on the request's key by now happens first, as if it had
// been done at its own instant: a deadline counts when a request is read, not
// when Advance comes round to it.
func (t *Table) Do(now Time, c *Command, fx *Effects) {
	switch c.Op {
	case OpAttach:
		t.attach(c)
	case OpDetach:
		t.detach(now, c, fx)
	case OpAcquire:
		t.acquire(now, c, fx)
	case OpRelease, OpExtend, OpForce, OpUndelivered:
		t.withHolder(now, c, fx)
	case OpCancel:
		t.cancel(now, c, fx)
	case OpCancelTicket, OpRemoveWaiter:
		t.cancelTicket(now, c, fx)
	default:
		panic("locks: unknown op")
	}
	c.hashed = false // the caller may put another key into it
}

// Advance does what fell due by now in the order of deadlines, at most limit
// of them (0 = all): the caller shares its mutex between the pieces. Nothing
// falls due in the whole table before Rouse is done, which Advance sees to as
// well: until then some ends are not known.
func (t *Table) Advance(now Time, limit int, fx *Effects) {
	due := t.due(now)
	if due == now && t.Rouse(now, limit, fx) {
		return
	}
	for n := 0; (limit == 0 || n < limit) && t.deadlines.next() <= due; n++ {
		t.expire(now, t.deadlines.slot(0).id, fx)
	}
}

// answer appends a reply to c.
func (c *Command) answer(code Code, fx *Effects) *Reply {
	r := fx.reply()
	r.To, r.Ref, r.Op, r.Code, r.Key, r.Ticket = c.Session, c.Ref, c.Op, code, fx.own(c.Key), c.Ticket
	return r
}

// withHolder decides what names a grant by its token.
func (t *Table) withHolder(now Time, c *Command, fx *Effects) {
	if c.Op == OpExtend && (c.Lease < 0 || c.Lease > t.cfg.MaxLease) {
		c.answer(BadLease, fx)
		return
	}
	eid := t.settled(now, c, fx)
	var id uint32
	if eid != 0 {
		id = t.findHolder(eid, c.Token)
	}
	switch {
	case c.Op == OpUndelivered:
		if id != 0 && t.claims.at(id).session == c.Session {
			t.undelivered(now, id, fx)
		}
	case id == 0 && c.Op == OpForce:
		c.answer(HolderChanged, fx)
	case id == 0:
		c.answer(NotHolder, fx).Token = c.Token
	case c.Op == OpExtend:
		t.extend(now, c, id, fx)
	case c.Op == OpForce:
		c.answer(ForceDone, fx).Token = c.Token
		t.endGrant(now, id, ByForce, t.due(now)+1, fx)
	default:
		c.answer(Released, fx).Token = c.Token
		t.endGrant(now, id, ByRelease, t.due(now)+1, fx)
	}
}

func (t *Table) extend(now Time, c *Command, id uint32, fx *Effects) {
	lease := t.leaseOf(c)
	t.ev = Event{Kind: EventExtend, Key: c.Key, Token: c.Token, Lease: lease}
	t.commit(now, place{entry: t.claims.at(id).entry, claim: id}, fx)
	if c.Flags&Stay == 0 {
		t.reclaim(id, c.Session)
	}
	r := c.answer(Extended, fx)
	r.Token, r.Lease = c.Token, lease
}

// reclaim gives a claim to a session that has shown that it knows of it.
func (t *Table) reclaim(id uint32, to Session) {
	t.moveTo(id, to)
	t.claims.at(id).undelivered = false
	t.setGrace(id, Never)
}

// undelivered deals with a grant that its client never got.
func (t *Table) undelivered(now Time, id uint32, fx *Effects) {
	c := t.claims.at(id)
	if c.ticket.IsZero() {
		t.endGrant(now, id, ByWithdrawal, t.due(now)+1, fx)
		return
	}
	c.undelivered = true
	t.moveTo(id, 0)
	t.setGrace(id, now.Add(t.cfg.ReattachGrace))
}

func (t *Table) cancel(now Time, c *Command, fx *Effects) {
	id := t.findRef(c.Session, c.Ref)
	for id != 0 && t.answered(now, id, fx) {
		id = t.findRef(c.Session, c.Ref)
	}
	if id == 0 {
		c.answer(NothingPending, fx)
		return
	}
	t.leave(now, id, ByCancel, fx)
	c.answer(CancelDone, fx)
}

// answered does what is due on a waiter's key, and reports whether that was
// the end of its waiting.
func (t *Table) answered(now Time, id uint32, fx *Effects) bool {
	c := t.claims.at(id)
	session, ref := c.session, c.id
	t.settle(now, c.entry, fx)
	return t.findRef(session, ref) != id || t.expireIfDue(now, id, fx)
}

func (t *Table) cancelTicket(now Time, c *Command, fx *Effects) {
	eid := t.settled(now, c, fx)
	var id uint32
	if eid != 0 {
		id = t.findTicket(eid, c.Ticket)
	}
	if id != 0 && t.expireIfDue(now, id, fx) {
		id = 0
	}
	code, reason := CancelDone, ByCancel
	if c.Op == OpRemoveWaiter {
		code, reason = WaiterRemoved, ByRemoval
	}
	switch {
	case id == 0 || t.claims.at(id).state == holding && c.Op == OpRemoveWaiter:
		c.answer(NoSuchTicket, fx)
	case !t.mayClaim(id, c):
		c.answer(NotAllowed, fx)
	case t.claims.at(id).state == holding:
		c.answer(AlreadyGranted, fx).Token = Token(t.claims.at(id).id)
	default:
		t.leave(now, id, reason, fx)
		c.answer(code, fx)
	}
}

// mayClaim says whether the command's session may use the ticket of claim id:
// only the identity that made it may, and an operator who removes a waiter.
func (t *Table) mayClaim(id uint32, c *Command) bool {
	if c.Op == OpRemoveWaiter {
		return true
	}
	return t.origins.at(t.claims.at(id).origin).Identity == t.identity(c)
}

func (t *Table) identity(c *Command) string {
	if c.Origin != nil {
		return c.Origin.Identity
	}
	if s := t.session(c.Session); s != nil {
		return t.origins.at(s.origin).Identity
	}
	return ""
}
