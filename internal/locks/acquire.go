package locks

import "time"

// acquire grants a key, queues for it, or says why not.
func (t *Table) acquire(now Time, c *Command, fx *Effects) {
	if code := t.badAcquire(c); code != 0 {
		c.answer(code, fx)
		return
	}
	eid := t.settled(now, c, fx)
	if eid == 0 { // nothing stands on the key, so no ticket of it does
		if code := t.overKeyLimit(now, c, fx); code != 0 {
			c.answer(code, fx)
			return
		}
		t.grantNew(now, c, place{hash: c.hash}, fx)
		return
	}
	// An attempt that is due now is a waiter behind others, since the key is
	// settled: the key stands without it, and this is a new attempt.
	if id := t.findTicket(eid, c.Ticket); id != 0 && !t.expireIfDue(now, id, fx) {
		t.repeat(now, c, id, fx)
		return
	}
	t.decide(now, c, eid, fx)
}

// decide judges a new attempt on a key on which something stands.
func (t *Table) decide(now Time, c *Command, eid uint32, fx *Effects) {
	k := t.entries.at(eid)
	switch {
	case k.slots != max(c.Slots, 1):
		c.answer(Mismatch, fx).Slots = k.slots
	case k.qhead == 0 && t.fits(k, c.Flags&Shared):
		t.grantNew(now, c, place{entry: eid}, fx)
	case k.holders == MaxHolders && k.qhead == 0 && c.Flags&Shared != 0 && t.sharedNow(k):
		c.answer(LimitHolders, fx)
	case c.Flags&Try != 0:
		c.answer(NotGranted, fx).Held = true
	default:
		t.enqueue(now, c, eid, fx)
	}
}

// badAcquire finds arguments that no state of the table could accept.
func (t *Table) badAcquire(c *Command) Code {
	switch {
	case len(c.Key) == 0 || len(c.Key) > MaxKeyLength:
		return BadKey
	case c.Lease < 0 || c.Lease > t.cfg.MaxLease:
		return BadLease
	case c.Wait < 0:
		return BadWait
	case c.Slots > 1 && c.Flags&Shared != 0:
		return BadSlots
	case c.Flags&Retry != 0 && c.Ticket.IsZero():
		return BadRetry
	}
	return 0
}

// fits says whether the key has room for one more holder of that mode.
func (t *Table) fits(k *entry, shared Flags) bool {
	switch {
	case k.root == 0:
		return true
	case k.slots > 1:
		return k.holders < k.slots
	}
	return shared != 0 && k.holders < MaxHolders && t.sharedNow(k)
}

// sharedNow says whether the key is held by shared holders. They are all of
// one mode, so the first tells.
func (t *Table) sharedNow(k *entry) bool {
	return k.root != 0 && t.claims.at(k.root).flags&Shared != 0
}

// leaseOf is the lease that an acquire gets, in whole milliseconds.
func (t *Table) leaseOf(c *Command) time.Duration {
	if c.Lease == 0 {
		return t.cfg.DefaultLease
	}
	return time.Duration(millis(c.Lease)) * time.Millisecond
}

// lasting are the flags of an acquire that stay with its claim.
const lasting = Shared | Bound | Contended

// describe fills t.ev with what an acquire asks for, and at with the number of
// its origin.
func (t *Table) describe(kind EventKind, c *Command, at *place) *Event {
	t.ev = Event{
		Kind: kind, Key: c.Key, Flags: c.Flags & lasting, Slots: max(c.Slots, 1),
		Lease: t.leaseOf(c), Ticket: c.Ticket, Origin: c.Origin,
	}
	if c.Origin == nil {
		if s := t.session(c.Session); s != nil {
			at.origin, t.ev.Origin = s.origin, t.origins.at(s.origin)
		}
	}
	return &t.ev
}

// grantNew grants an acquire that did not have to wait.
func (t *Table) grantNew(now Time, c *Command, at place, fx *Effects) {
	e := t.describe(EventGrant, c, &at)
	e.Token = t.nextToken(now)
	at = t.commit(now, at, fx)
	t.moveTo(at.claim, c.Session)
	r := c.answer(Granted, fx)
	r.Token, r.Lease = e.Token, e.Lease
	t.tellContended(at.claim, fx)
}

func (t *Table) enqueue(now Time, c *Command, eid uint32, fx *Effects) {
	if code := t.overWaiterLimit(c, eid); code != 0 {
		if t.deadlines.next() > t.due(now) {
			c.answer(code, fx)
			return
		}
		// What fell due but was not swept yet must not keep anyone out.
		t.Advance(now, 0, fx)
		t.acquire(now, c, fx)
		return
	}
	at := place{entry: eid}
	t.describe(EventEnqueue, c, &at).Wait = c.Wait
	at = t.commit(now, at, fx)
	t.claims.at(at.claim).id = c.Ref
	t.moveTo(at.claim, c.Session)
	k := t.entries.at(eid)
	c.answer(Queued, fx).Position = k.waiters
	t.tellHolders(k, fx)
}

// tellHolders tells the holders of a key that asked for it of a new waiter.
func (t *Table) tellHolders(k *entry, fx *Effects) {
	told := 0
	t.eachHolder(k, func(id uint32, _ *claim) bool {
		t.tellContended(id, fx)
		told++
		return told < mostTold
	})
}

// mostTold bounds the holders of one key that are told of a new waiter: it is
// advice, and a waiter must not cost as much as there are holders.
const mostTold = 16

// overKeyLimit judges a key on which nothing stands yet.
func (t *Table) overKeyLimit(now Time, c *Command, fx *Effects) Code {
	code := t.keyLimit(c)
	if code != 0 {
		t.Advance(now, 0, fx)
		code = t.keyLimit(c)
	}
	return code
}

func (t *Table) keyLimit(c *Command) Code {
	switch {
	case t.entries.n >= t.cfg.MaxKeys:
		return LimitKeys
	case t.keyBytes+int64(len(c.Key)) > t.cfg.MaxKeyBytes:
		return LimitKeyBytes
	}
	return 0
}

func (t *Table) overWaiterLimit(c *Command, eid uint32) Code {
	s := t.session(c.Session)
	switch {
	case s != nil && int(s.waiters) >= t.cfg.MaxPending:
		return LimitPending
	case int(t.entries.at(eid).waiters) >= t.cfg.MaxWaitersPerKey:
		return LimitKeyWaiters
	case t.waiters >= t.cfg.MaxWaiters:
		return LimitWaiters
	}
	return 0
}

// repeat answers an acquire whose attempt stands on the key already: it moves
// to whoever asked last.
func (t *Table) repeat(now Time, c *Command, id uint32, fx *Effects) {
	cl := t.claims.at(id)
	switch {
	case !t.mayClaim(id, c):
		c.answer(NotAllowed, fx)
	case cl.state == holding:
		t.reclaim(id, c.Session)
		r := c.answer(Granted, fx)
		r.Token, r.Lease = Token(cl.id), max(cl.deadline.Sub(now), 0)
	default:
		t.withdrawRequest(cl, fx)
		t.moveTo(id, 0) // out of the index under its old number
		cl.id = c.Ref
		t.reclaim(id, c.Session)
		c.answer(Queued, fx).Position = t.position(cl)
	}
}

// withdrawRequest answers the request under which a waiter waited, if anybody
// is there to hear it: the waiter itself may go on.
func (t *Table) withdrawRequest(c *claim, fx *Effects) {
	if t.here(c.session) {
		t.tell(c, Cancelled, fx)
	}
}

// tell appends a reply to the request under which a waiter waits.
func (t *Table) tell(c *claim, code Code, fx *Effects) *Reply {
	r := fx.reply()
	r.To, r.Ref, r.Op, r.Code, r.Ticket = c.session, c.id, OpAcquire, code, c.ticket
	r.Key = fx.own(t.keyOf(t.entries.at(c.entry)))
	return r
}

// position is a waiter's place in line: exact while nobody ahead of it has
// given up, else at most that many too high. Counting would cost as much as
// the queue is long.
func (t *Table) position(c *claim) uint32 {
	k := t.entries.at(c.entry)
	return min(c.child-t.claims.at(k.qhead).child+1, k.waiters)
}
