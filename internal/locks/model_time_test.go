package locks_test

import (
	"bytes"
	"slices"

	. "holdfast/internal/locks"
)

// sooner orders what falls due: by instant, then ends of leases before ends of
// waits, then in the order in which the deadlines were set.
func (m *model) sooner(a, b *claim) bool {
	switch {
	case b == nil:
		return true
	case a.end() != b.end():
		return a.end() < b.end()
	case (a.token != 0) != (b.token != 0):
		return a.token != 0
	case a.set == b.set:
		return m.hinted(a) < m.hinted(b)
	}
	return a.set < b.set
}

// hinted finds the place of c's end among what the table did.
func (m *model) hinted(c *claim) int {
	for i := range m.hint {
		e := &m.hint[i]
		if c.token != 0 && e.Kind == EventEnd && e.Token == c.token ||
			c.token == 0 && e.Kind == EventDequeue && e.Ticket == c.ticket && bytes.Equal(e.Key, c.key.name) {
			return i
		}
	}
	return len(m.hint)
}

func (m *model) soonest(first *claim, list []*claim) *claim {
	for _, c := range list {
		if m.sooner(c, first) {
			first = c
		}
	}
	return first
}

// first finds what ends first of all; nil if nothing stands in the table.
func (m *model) first() (first *claim) {
	for _, k := range m.keys {
		first = m.soonest(m.soonest(first, k.holds), k.queue)
	}
	return first
}

func (m *model) next() Time {
	if c := m.first(); c != nil {
		return max(c.end(), m.calm)
	}
	return Never
}

// due finds what has to happen on a key before a command is decided: of its
// holders and the head of its queue, what ended first. A waiter further back
// changes nothing for anyone else, and is left to advance.
func (m *model) due(now Time, k *mkey) *claim {
	c := m.soonest(m.soonest(nil, k.holds), k.queue[:min(len(k.queue), 1)])
	if c == nil || !m.over(now, c) {
		return nil
	}
	return c
}

// over says whether c has ended: in the first two seconds after a promotion
// nothing does.
func (m *model) over(now Time, c *claim) bool { return now >= m.calm && c.end() <= now }

// rouse does what a promotion left to do on a key: who may have waited only
// for clients that are gone is let in, as of the promotion.
func (m *model) rouse(now Time, k *mkey) {
	if k.roused {
		return
	}
	k.roused = true
	m.sets++
	for _, c := range slices.Concat(k.holds, k.queue) {
		if c.later {
			c.set, c.later = m.sets, false // in an order that the table knows
		}
	}
	m.handOn(now, k, min(m.atRequest(now), m.began+1))
	m.forget(k)
}

// settle does what is due on a key.
func (m *model) settle(now Time, k *mkey) {
	m.rouse(now, k)
	for c := m.due(now, k); c != nil; c = m.due(now, k) {
		m.end(now, c)
	}
}

// advance does what fell due by now on the whole table, at most most of it
// (0 = all).
func (m *model) advance(now Time, most int) {
	for done := 0; most == 0 || done < most; done++ {
		c := m.first()
		if c == nil || !m.over(now, c) {
			return
		}
		if !c.key.roused {
			m.rouse(now, c.key)
			continue
		}
		m.end(now, c)
		m.forget(c.key)
	}
}

// end takes a claim out because its time is over.
func (m *model) end(now Time, c *claim) {
	switch at := c.end(); {
	case c.token != 0 && c.grace <= min(c.limit, c.bound):
		m.endGrant(now, c, ByWithdrawal, at)
	case c.token != 0:
		m.endGrant(now, c, ByExpiry, at)
	default:
		m.leave(now, c, c.giveUp(), at)
	}
}

// giveUp says why a waiter that is due leaves.
func (c *claim) giveUp() Reason {
	if c.limit <= c.grace {
		return ByTimeout
	}
	return ByDetach
}

// endGrant ends a grant and hands the key on; it was free from then on.
func (m *model) endGrant(now Time, c *claim, why Reason, from Time) {
	c.key.holds = without(c.key.holds, c)
	m.event(Event{Kind: EventEnd, Key: c.key.name, Token: c.token, Reason: why})
	if why == ByExpiry || why == ByForce {
		m.tell(Reply{To: c.session, Code: Lost, Reason: why, Key: c.key.name, Token: c.token})
	}
	m.handOn(now, c.key, from)
}

// leave takes a waiter out of the queue; those behind it may fit from then on.
func (m *model) leave(now Time, c *claim, why Reason, from Time) {
	m.drop(now, c, why)
	m.handOn(now, c.key, from)
}

// drop takes a waiter out and answers it.
func (m *model) drop(now Time, c *claim, why Reason) {
	c.key.queue = without(c.key.queue, c)
	r := Reply{To: c.session, Ref: c.ref, Op: OpAcquire, Key: c.key.name, Ticket: c.ticket}
	switch why {
	case ByTimeout:
		r.Code, r.Waited = NotGranted, now.Sub(c.since)
		m.tell(r)
	case ByCancel, ByRemoval:
		r.Code = Cancelled
		m.tell(r)
	}
	if !c.ticket.IsZero() {
		m.event(Event{Kind: EventDequeue, Key: c.key.name, Ticket: c.ticket, Reason: why})
	}
}

// atRequest is the instant from which a request makes room: all that is due by
// now came before it, but in the first two seconds nothing is due.
func (m *model) atRequest(now Time) Time {
	if now < m.calm {
		return -Never
	}
	return now + 1
}

// handOn grants to the head of the queue as long as it fits. There was room
// from an instant on that may lie before now: who had given up by then is told
// so, whoever still waited then gets the key.
func (m *model) handOn(now Time, k *mkey, from Time) {
	for len(k.queue) > 0 {
		switch c := k.queue[0]; {
		case c.end() < from:
			m.drop(now, c, c.giveUp())
		case m.abandoned(c):
			m.drop(now, c, ByDetach)
		case k.fits(c.flags, k.slots):
			k.queue = k.queue[1:]
			m.grant(now, c)
		default:
			return
		}
	}
}

// abandoned says whether nobody is left to ask for what c waits for.
func (m *model) abandoned(c *claim) bool {
	return m.connected(c.session) == 0 && c.ticket.IsZero()
}

// fits says whether one more may hold the key, whoever waits.
func (k *mkey) fits(flags Flags, slots uint16) bool {
	switch {
	case len(k.holds) == 0:
		return true
	case slots > 1:
		return len(k.holds) < int(slots)
	}
	return flags&Shared != 0 && k.holds[0].flags&Shared != 0 && len(k.holds) < MaxHolders
}

// grant makes c a holder, who waited since c.since.
func (m *model) grant(now Time, c *claim) {
	waited := now.Sub(c.since)
	if m.connected(c.session) == 0 {
		m.disconnect(now, c)
		c.session = 0 // it is not that session's to have: nobody told it
	}
	c.token = m.nextToken(now)
	m.ask(c)
	c.since, c.limit = now, now.Add(c.lease)
	m.sets++
	c.set = m.sets
	c.key.holds = append(c.key.holds, c)
	m.event(Event{Kind: EventGrant, Key: c.key.name, Token: c.token, Lease: c.lease, Slots: c.key.slots,
		Flags: c.flags, Ticket: c.ticket, Origin: &c.origin})
	m.tell(Reply{To: c.session, Ref: c.ref, Op: OpAcquire, Code: Granted, Key: c.key.name, Token: c.token,
		Lease: c.lease, Waited: waited, Ticket: c.ticket})
	if c.flags&Contended != 0 && len(c.key.queue) > 0 {
		m.contended(c)
	}
}

func (m *model) contended(holder *claim) {
	m.tell(Reply{To: holder.session, Code: ContendedPush, Key: holder.key.name, Token: holder.token,
		Waiters: uint32(len(holder.key.queue))})
}

func without(list []*claim, c *claim) []*claim {
	i := slices.Index(list, c)
	return slices.Delete(list, i, i+1)
}
