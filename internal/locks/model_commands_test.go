package locks_test

import (
	"cmp"
	"slices"

	. "holdfast/internal/locks"
)

func (m *model) release(now Time, k *mkey, c *Command) {
	h := k.holder(c.Token)
	if h == nil {
		m.answerWith(c, Reply{Code: NotHolder, Token: c.Token})
		return
	}
	m.answerWith(c, Reply{Code: Released, Token: c.Token})
	m.endGrant(now, h, ByRelease, m.atRequest(now))
}

func (m *model) extend(now Time, k *mkey, c *Command) {
	h := k.holder(c.Token)
	if h == nil {
		m.answerWith(c, Reply{Code: NotHolder, Token: c.Token})
		return
	}
	lease := cmp.Or(c.Lease, m.cfg.DefaultLease)
	m.change(h, func() {
		h.limit = now.Add(lease)
		if c.Flags&Stay == 0 {
			m.moveGrant(h, c.Session)
		}
	})
	m.event(Event{Kind: EventExtend, Key: k.name, Token: h.token, Lease: lease})
	m.answerWith(c, Reply{Code: Extended, Token: h.token, Lease: lease})
}

// cancel withdraws the session's oldest waiter of a Ref. What is due on that
// waiter's key comes first, and may leave the next oldest.
func (m *model) cancel(now Time, c *Command) {
	for {
		w := m.pendingUnder(c)
		if w == nil {
			m.answer(c, NothingPending)
			return
		}
		m.settle(now, w.key)
		if m.pendingUnder(c) == w && m.over(now, w) {
			m.end(now, w)
		}
		m.forget(w.key)
		if m.pendingUnder(c) == w {
			m.withdraw(now, w, c, CancelDone, ByCancel)
			return
		}
	}
}

func (m *model) pendingUnder(c *Command) (oldest *claim) {
	for _, k := range m.keys {
		for _, w := range k.queue {
			if w.session == c.Session && w.ref == c.Ref && (oldest == nil || w.asked < oldest.asked) {
				oldest = w
			}
		}
	}
	return oldest
}

// withdraw ends a wait at somebody's request.
func (m *model) withdraw(now Time, w *claim, c *Command, done Code, why Reason) {
	m.leave(now, w, why, m.atRequest(now))
	m.forget(w.key)
	m.answer(c, done)
}

// waiter finds the waiter of a ticket. One that is due, though not at the head,
// leaves now.
func (m *model) waiter(now Time, k *mkey, t Ticket) *claim {
	w := withTicket(k.queue, t)
	if w != nil && m.over(now, w) {
		m.end(now, w)
		return nil
	}
	return w
}

func (m *model) cancelTicket(now Time, k *mkey, c *Command) {
	w, h := m.waiter(now, k, c.Ticket), withTicket(k.holds, c.Ticket)
	switch {
	case w == nil && h == nil:
		m.answer(c, NoSuchTicket)
	case w != nil && m.originOf(c).Identity != w.origin.Identity,
		h != nil && m.originOf(c).Identity != h.origin.Identity:
		m.answer(c, NotAllowed)
	case w != nil:
		m.withdraw(now, w, c, CancelDone, ByCancel)
	default:
		m.answerWith(c, Reply{Code: AlreadyGranted, Token: h.token})
	}
}

func (m *model) removeWaiter(now Time, k *mkey, c *Command) {
	if w := m.waiter(now, k, c.Ticket); w != nil {
		m.withdraw(now, w, c, WaiterRemoved, ByRemoval)
	} else {
		m.answer(c, NoSuchTicket)
	}
}

func (m *model) force(now Time, k *mkey, c *Command) {
	h := k.holder(c.Token)
	if h == nil {
		m.answer(c, HolderChanged)
		return
	}
	m.answerWith(c, Reply{Code: ForceDone, Token: c.Token})
	m.endGrant(now, h, ByForce, m.atRequest(now))
}

// undelivered ends a grant that its client never got, or keeps it for whoever
// asks with its ticket.
func (m *model) undelivered(now Time, k *mkey, c *Command) {
	h := k.holder(c.Token)
	switch {
	case h == nil || h.session != c.Session:
	case h.ticket.IsZero():
		m.endGrant(now, h, ByWithdrawal, m.atRequest(now))
	default:
		m.change(h, func() { h.session, h.grace, h.bound = 0, now.Add(m.cfg.ReattachGrace), Never })
	}
}

// detach ends a session at once for all decisions; then its claims are looked
// at, what it asked for last first.
func (m *model) detach(now Time, s Session) {
	delete(m.sessions, s)
	var left []*claim
	for _, k := range m.keys {
		for _, c := range slices.Concat(k.holds, k.queue) {
			if c.session == s && (c.token == 0 || c.flags&Bound != 0) {
				left = append(left, c)
			}
		}
	}
	slices.SortFunc(left, func(a, b *claim) int { return cmp.Compare(b.asked, a.asked) })
	for _, c := range left {
		m.rouse(now, c.key)
		switch {
		case c.token == 0 && !c.ticket.IsZero(), c.token != 0 && c.grace == Never:
			m.disconnect(now, c)
		case c.token == 0 && slices.Contains(c.key.queue, c):
			m.leave(now, c, ByDetach, m.atRequest(now))
			m.forget(c.key)
		}
	}
}

// disconnect starts the grace of a claim whose session is gone. It goes on
// where it has started.
func (m *model) disconnect(now Time, c *claim) {
	until := now.Add(m.cfg.ReattachGrace)
	m.change(c, func() {
		if c.token != 0 {
			c.bound = min(c.bound, until)
		} else {
			c.grace = min(c.grace, until)
		}
	})
}

// stats counts.
func (m *model) stats() (s Stats) {
	for name, k := range m.keys {
		if len(k.holds)+len(k.queue) > 0 {
			s.Keys++
			s.KeyBytes += int64(len(name))
		}
		s.Held += len(k.holds)
		s.Waiters += len(k.queue)
	}
	s.Highest = Token(8*m.last + uint64(m.cfg.Rank))
	return s
}

func (m *model) waitersOn(key []byte) int {
	if k := m.keys[string(key)]; k != nil {
		return len(k.queue)
	}
	return 0
}
