package locks

// Snapshot appends to fx.Events what rebuilds the table elsewhere, a piece of
// at least atLeast claims or ended tokens (less at the end) at a time: start with cursor 0, go on
// with the cursor returned, until it is 0. The table may change in between:
// every piece stands in the event stream at the place where it was taken, and
// says of each of its keys all that stands on it, so that a follower that folds
// stream and pieces in order ends up with the same state. Waiters without a
// ticket are left out. fx.Seq does not count these events.
//
// First comes the ended set. Once a follower has the beginning it knows the
// set's bounds, so that an end in the stream gets the same place there as here;
// the pieces fill the places before.
func (t *Table) Snapshot(now Time, cursor uint64, atLeast int, fx *Effects) (next uint64) {
	if cursor == 0 {
		fx.Events = append(fx.Events, Event{Kind: EventClear, Index: t.ended.next},
			Event{Kind: EventEpoch, Token: t.token(t.counter)}, Event{Kind: EventTrim, Index: t.ended.first})
		cursor = endedCursor | t.ended.next
	}
	taken := 0
	if cursor&endedCursor != 0 {
		if cursor, taken = t.captureEnded(cursor&^endedCursor, atLeast, fx); cursor != 0 {
			return endedCursor | cursor
		}
	}
	return uint64(t.walk(uint32(cursor), func(id uint32, k *entry) bool {
		taken += t.capture(now, k, fx)
		return taken < atLeast
	}))
}

// endedCursor marks a cursor as a place in the ended set; others are a key's.
const endedCursor = 1 << 63

// captureEnded appends the places of the ended set before below, the last
// first: the set may grow as fast as it is told, and lose its oldest, and the
// walk still ends. It returns the place to go on before, 0 at the end. What is
// appended meanwhile travels in the stream.
func (t *Table) captureEnded(below uint64, atLeast int, fx *Effects) (next uint64, taken int) {
	for below > t.ended.first {
		if taken >= atLeast {
			return below, taken
		}
		below--
		if token := *t.ended.at(below); token != 0 { // a hole here is one there
			fx.Events = append(fx.Events, Event{Kind: EventEnded, Token: token, Index: below})
			taken++
		}
	}
	return 0, taken
}

// capture appends what stands on one key and returns how many claims that was.
func (t *Table) capture(now Time, k *entry, fx *Effects) int {
	key := fx.own(t.keyOf(k))
	from := len(fx.Events)
	fx.Events = append(fx.Events, Event{Kind: EventReset, Key: key})
	t.eachHolder(k, func(_ uint32, c *claim) bool {
		fx.Events = append(fx.Events, Event{
			Kind: EventGrant, Key: key, Token: Token(c.id), Lease: max(c.deadline.Sub(now), 0),
			Slots: k.slots, Flags: c.flags, Ticket: c.ticket, Origin: t.origins.at(c.origin),
		})
		return true
	})
	for id := k.qhead; id != 0; id = t.claims.at(id).next {
		c := t.claims.at(id)
		if c.ticket.IsZero() {
			continue
		}
		e := Event{
			Kind: EventEnqueue, Key: key, Lease: c.leaseTime(),
			Slots: k.slots, Flags: c.flags, Ticket: c.ticket, Origin: t.origins.at(c.origin),
		}
		if c.deadline != Never {
			e.Wait = max(c.deadline.Sub(now), 1) // due but not swept is not "no bound"
		}
		fx.Events = append(fx.Events, e)
	}
	return len(fx.Events) - from
}

// walk calls fn for the keys in the order of their records from cursor on,
// until it returns false. It returns the cursor to go on with, 0 at the end.
func (t *Table) walk(cursor uint32, fn func(id uint32, k *entry) bool) uint32 {
	for id := max(cursor, 1); int(id>>chunkBits) < len(t.entries.chunks); id++ {
		if t.entries.chunks[id>>chunkBits] == nil {
			id |= chunkMask
			continue
		}
		k := t.entries.at(id)
		if k.keyLen != 0 && !fn(id, k) {
			return id + 1
		}
	}
	return 0
}

// forgetAll empties the table but for its counter and sessions.
func (t *Table) forgetAll() {
	for cursor := uint32(1); cursor != 0; {
		cursor = t.walk(cursor, func(id uint32, _ *entry) bool {
			t.forgetKey(id)
			return true
		})
	}
}

// forgetKey takes everything off a key.
func (t *Table) forgetKey(id uint32) {
	if id == 0 {
		return
	}
	k := t.entries.at(id)
	for k.root != 0 {
		t.unhold(place{entry: id, claim: k.root})
	}
	for k.qhead != 0 {
		w := k.qhead
		t.unqueue(w)
		t.freeClaim(w)
	}
	t.dropIfEmpty(id)
}
