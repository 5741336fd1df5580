package locks_test

import (
	"cmp"
	"slices"

	. "holdfast/internal/locks"
)

// acquire decides an acquire: ticket, mode, TRY, limits.
func (m *model) acquire(now Time, k *mkey, c *Command) {
	w, h, slots := m.waiter(now, k, c.Ticket), withTicket(k.holds, c.Ticket), max(c.Slots, 1)
	switch {
	case h != nil:
		m.grantAgain(now, h, c)
	case w != nil:
		m.queueAgain(w, c)
	case len(k.holds)+len(k.queue) > 0 && k.slots != slots:
		m.answerWith(c, Reply{Code: Mismatch, Slots: k.slots})
	default:
		m.acquireFresh(now, k, c, slots)
	}
}

func (m *model) originOf(c *Command) Origin {
	if c.Origin != nil {
		return *c.Origin
	}
	return m.sessions[c.Session]
}

// grantAgain repeats a grant to whoever asks with its ticket.
func (m *model) grantAgain(now Time, h *claim, c *Command) {
	if m.originOf(c).Identity != h.origin.Identity {
		m.answer(c, NotAllowed)
		return
	}
	m.moveGrant(h, c.Session)
	m.answerWith(c, Reply{Code: Granted, Token: h.token, Lease: max(h.limit.Sub(now), 0)})
}

// moveGrant gives a grant to a session that proved to know of it.
func (m *model) moveGrant(h *claim, to Session) {
	m.ask(h)
	m.change(h, func() { h.session, h.grace, h.bound = to, Never, Never })
}

// queueAgain gives a waiter to whoever asks with its ticket. The wait goes on,
// even for one that says Try.
func (m *model) queueAgain(w *claim, c *Command) {
	if m.originOf(c).Identity != w.origin.Identity {
		m.answer(c, NotAllowed)
		return
	}
	m.tell(Reply{To: w.session, Ref: w.ref, Op: OpAcquire, Code: Cancelled, Key: w.key.name, Ticket: w.ticket})
	m.ask(w)
	m.change(w, func() { w.session, w.ref, w.grace = c.Session, c.Ref, Never })
	m.queued(w, c)
}

func (m *model) queued(w *claim, c *Command) {
	m.answerWith(c, Reply{Code: Queued, Position: uint32(slices.Index(w.key.queue, w) + 1)})
}

func (m *model) acquireFresh(now Time, k *mkey, c *Command, slots uint16) {
	atOnce := len(k.queue) == 0 && k.fits(c.Flags, slots)
	full := len(k.queue) == 0 && len(k.holds) == MaxHolders && c.Flags&Shared != 0 && k.holds[0].flags&Shared != 0
	if !atOnce && !full && c.Flags&Try != 0 {
		m.answerWith(c, Reply{Code: NotGranted, Held: true})
		return
	}
	limit := m.limit(k, c, atOnce, full)
	if limit != 0 {
		m.advance(now, 0)
		limit = m.limit(k, c, atOnce, full)
	}
	if limit != 0 {
		m.answer(c, limit)
		return
	}
	m.keys[string(k.name)] = k
	k.slots = slots
	w := m.newClaim(now, k, c)
	if atOnce {
		m.grant(now, w)
	} else {
		m.enqueue(now, w, c)
	}
}

// limit names the limit that a fresh acquire would pass, 0 for none.
func (m *model) limit(k *mkey, c *Command, atOnce, full bool) Code {
	s := m.stats()
	switch {
	case full:
		return LimitHolders
	case atOnce && len(k.holds) == 0 && s.Keys >= m.cfg.MaxKeys:
		return LimitKeys
	case atOnce && len(k.holds) == 0 && s.KeyBytes+int64(len(k.name)) > m.cfg.MaxKeyBytes:
		return LimitKeyBytes
	case atOnce:
		return 0
	case m.pending(c.Session) >= m.cfg.MaxPending:
		return LimitPending
	case len(k.queue) >= m.cfg.MaxWaitersPerKey:
		return LimitKeyWaiters
	case s.Waiters >= m.cfg.MaxWaiters:
		return LimitWaiters
	}
	return 0
}

// pending counts the waiters of a session.
func (m *model) pending(s Session) (n int) {
	for _, k := range m.keys {
		for _, w := range k.queue {
			if w.session == s {
				n++
			}
		}
	}
	return n
}

func (m *model) newClaim(now Time, k *mkey, c *Command) *claim {
	w := &claim{key: k, session: c.Session, ref: c.Ref, origin: m.originOf(c), ticket: c.Ticket,
		flags: c.Flags & (Shared | Bound | Contended), lease: cmp.Or(c.Lease, m.cfg.DefaultLease),
		since: now, limit: Never, grace: Never, bound: Never}
	if c.Wait > 0 {
		w.limit = now.Add(c.Wait)
	}
	return w
}

func (m *model) enqueue(now Time, w *claim, c *Command) {
	m.ask(w)
	m.sets++
	w.set = m.sets
	w.key.queue = append(w.key.queue, w)
	if !w.ticket.IsZero() {
		m.event(Event{Kind: EventEnqueue, Key: w.key.name, Ticket: w.ticket, Lease: w.lease, Wait: c.Wait,
			Slots: w.key.slots, Flags: w.flags, Origin: &w.origin})
	}
	m.queued(w, c)
	for _, h := range w.key.holds {
		if h.flags&Contended != 0 {
			m.contended(h)
		}
	}
}
