package locks

import "time"

// reign is what a table knows of its time as the active. The number is stamped
// on every key that belongs to it already: those made in it, and those that
// were roused.
type reign struct {
	number uint16
	began  Time
	calm   Time   // nothing expires before; 0 = not in force
	cursor uint32 // where Rouse goes on; 0 = it is done
}

// calmTime is how long after a promotion nothing expires: whoever could not
// extend while there was no active must not lose a key for it.
const calmTime = 2 * time.Second

// Activate begins a reign: the counter rises to the token clock and above
// floor, and the first token, the epoch, is taken for the reign itself. What was
// replicated has no client yet: it counts as disconnected from now on, which
// Rouse sees to.
func (t *Table) Activate(now Time, floor Token, fx *Effects) (epoch Token) {
	t.Hear(floor)
	t.ev = Event{Kind: EventEpoch, Token: t.nextToken(now)}
	epoch = t.ev.Token
	t.commit(now, place{}, fx)
	t.reign = reign{number: t.reign.number + 1, began: now}
	if t.entries.n > 0 { // an empty table has nobody to protect
		t.reign.calm, t.reign.cursor = now.Add(calmTime), 1
	}
	return epoch
}

// Rouse goes on with what Activate began, for limit keys (0 = all): graces
// start for those who are not connected, and whoever a client that is gone kept
// out is let in. It reports whether there is more to do.
//
// Between Activate and the end of the walk requests may come. A key that the
// walk has not reached is roused before anything is decided about it, by
// whatever comes first: a request that names it, a session that leaves it. It
// is stamped then and the walk passes it over. What falls due waits for the
// walk. So it makes no difference when the walk comes by, but for the instant
// at which a waiter that was kept out is granted: graces count from the
// activation's, and a key on which nobody acts shows nothing in between.
func (t *Table) Rouse(now Time, limit int, fx *Effects) (more bool) {
	if t.reign.cursor == 0 {
		return false
	}
	n := 0
	t.reign.cursor = t.walk(t.reign.cursor, func(id uint32, _ *entry) bool {
		if t.asleep(id) {
			t.rouse(now, id, fx)
		}
		n++
		return n != limit
	})
	return t.reign.cursor != 0
}

// asleep says whether a key does not belong to this reign yet.
func (t *Table) asleep(eid uint32) bool { return t.entries.at(eid).reign != t.reign.number }

// rouse brings a key into this reign, and reports whether anything still
// stands on it. A waiter without a ticket may have kept out those behind it,
// and was never heard of here: there is room since the reign began.
func (t *Table) rouse(now Time, eid uint32, fx *Effects) bool {
	t.wake(eid)
	return t.serve(now, eid, min(t.due(now), t.reign.began)+1, fx)
}

// wake starts the graces of a key and stamps it; serving the queue is left to
// the caller.
func (t *Table) wake(eid uint32) {
	k := t.entries.at(eid)
	if k.reign == t.reign.number {
		return
	}
	k.reign = t.reign.number
	for _, id := range t.holdersOf(k) {
		t.startGrace(id)
	}
	for id := k.qhead; id != 0; id = t.claims.at(id).next {
		t.startGrace(id)
	}
}

// holdersOf lists the holders of a key whose client may be away: those that are
// in no session's list. It is for changing their ends, which eachHolder's walk
// would not survive. It is good until the next call.
func (t *Table) holdersOf(k *entry) []uint32 {
	t.scratch = t.scratch[:0]
	t.eachHolder(k, func(id uint32, c *claim) bool {
		if !c.linked {
			t.scratch = append(t.scratch, id)
		}
		return true
	})
	return t.scratch
}

// startGrace gives a claim that belongs to no session the grace that it has in
// this reign. What was noted in an earlier one is void: since then the client
// may have come back, elsewhere.
func (t *Table) startGrace(id uint32) {
	c, until := t.claims.at(id), t.reign.began.Add(t.cfg.ReattachGrace)
	if c.linked || c.grace != Never && c.grace >= until { // it began in this reign
		return
	}
	if c.state == holding && c.flags&Bound == 0 {
		until = Never
	}
	c.undelivered = false
	t.setGrace(id, until)
}

// due is the instant up to which claims that end are over at now: now itself,
// or long ago while the reign is too young for anything to expire.
func (t *Table) due(now Time) Time {
	if now < t.reign.calm {
		return longAgo
	}
	return now
}

// longAgo is before every end.
const longAgo = -Never

// Next says when Advance is needed; Never when nothing is due at all.
func (t *Table) Next() Time {
	next := t.deadlines.next()
	switch {
	case t.reign.cursor != 0: // some ends are not known yet
		return t.reign.calm
	case next == Never:
		return Never
	}
	return max(next, t.reign.calm)
}
