package locks_test

import (
	"cmp"
	"slices"

	. "holdfast/internal/locks"
)

// merge takes over what another node knows, told as the events of its
// snapshot; order names the keys here as the table walks them.
func (m *model) merge(now Time, theirs []Event, order []string) {
	there := foldPlainly(m.cfg, now, theirs)
	m.last = max(m.last, there.last)
	m.advance(now, 0)
	var freed []*mkey
	for _, name := range order {
		k := m.keys[name]
		if k != nil && m.endThose(now, k, func(h *claim) bool { return slices.Contains(there.ended, h.token) }) {
			freed = append(freed, k)
		}
	}
	for _, token := range there.ended {
		m.noteEnded(token)
	}
	for i := range theirs {
		if k := there.keys[string(theirs[i].Key)]; k != nil {
			delete(there.keys, string(k.name)) // each once
			m.mergeKey(now, m.key(k.name), k)
		}
	}
	for _, k := range freed {
		m.handOn(now, k, m.atRequest(now))
		m.forget(k)
	}
}

// foldPlainly makes a model of a snapshot's events.
func foldPlainly(cfg Config, now Time, events []Event) *model {
	there := newModel(cfg)
	for i := range events {
		e := &events[i]
		there.last = max(there.last, uint64(e.Token)/8)
		if e.Kind == EventEnded {
			there.ended = append(there.ended, e.Token)
			continue
		}
		k := there.key(e.Key)
		k.slots = e.Slots
		c := &claim{key: k, ticket: e.Ticket, flags: e.Flags, lease: e.Lease, token: e.Token, origin: *e.Origin, since: now,
			limit: now.Add(e.Lease), grace: Never, bound: Never}
		switch {
		case e.Kind == EventGrant:
			if w := withTicket(k.queue, c.ticket); w != nil {
				k.queue = without(k.queue, w)
				c.flags, c.origin = w.flags, w.origin
			}
			k.holds = append(k.holds, c)
			continue
		case e.Wait > 0:
			c.limit = now.Add(e.Wait)
		default:
			c.limit = Never
		}
		k.queue = append(k.queue, c)
	}
	return there
}

func (m *model) noteEnded(token Token) {
	if slices.Contains(m.ended, token) {
		return
	}
	m.ended = append(m.ended, token)
	m.last = max(m.last, uint64(token)/8)
	m.event(Event{Kind: EventEnded, Token: token})
}

// endThose supersedes the grants of a key that gone names, the highest token first.
func (m *model) endThose(now Time, k *mkey, gone func(h *claim) bool) (any bool) {
	if !slices.ContainsFunc(k.holds, gone) {
		return false
	}
	m.wake(k)
	for _, h := range slices.Backward(slices.Clone(k.holds)) {
		if gone(h) {
			m.takeGrant(now, h, BySupersede)
			any = true
		}
	}
	return any
}

func (m *model) mergeKey(now Time, k, theirs *mkey) {
	m.wake(k)
	fresh := len(k.holds)+len(k.queue) == 0
	slices.SortFunc(theirs.holds, func(a, b *claim) int { return cmp.Compare(b.token, a.token) })
	both := map[Token]*claim{}
	for _, h := range slices.Concat(k.holds, theirs.holds) {
		ours := both[h.token]
		switch {
		case h.key == theirs && slices.Contains(m.ended, h.token):
		case ours != nil && h.limit > max(ours.limit, now):
			m.change(ours, func() { ours.limit = h.limit })
			m.event(Event{Kind: EventExtend, Key: k.name, Token: h.token, Lease: h.limit.Sub(now)})
		case ours == nil && (h.key == k || h.limit > now):
			both[h.token] = h
		}
	}
	kept := surviving(both)
	if len(kept) > 0 && !fresh && kept[0].key.slots != k.slots {
		for len(k.queue) > 0 {
			m.refuse(now, k.queue[0], kept[0].key.slots)
		}
	}
	for _, token := range downwards(both) {
		switch c := both[token]; {
		case slices.Contains(kept, c):
		case c.key == k:
			m.takeGrant(now, c, BySupersede)
		default:
			m.noteEnded(token)
		}
	}
	if len(k.holds)+len(k.queue) == 0 {
		k.slots = theirs.slots
	}
	news := false
	for _, c := range kept {
		if c.key == theirs {
			m.takeOver(now, k, c)
			news = true
		}
	}
	news = m.queueTheirs(now, k, theirs) || news
	if news {
		m.tellNews(k)
	}
	m.handOn(now, k, m.atRequest(now))
	m.forget(k)
}

// surviving chooses from the highest token down.
func surviving(grants map[Token]*claim) (kept []*claim) {
	for _, token := range downwards(grants) {
		c, k := grants[token], &mkey{holds: kept}
		same := len(kept) == 0 || kept[0].key.slots == c.key.slots && kept[0].flags&Shared == c.flags&Shared
		if same && k.fits(c.flags, c.key.slots) && withTicket(kept, c.ticket) == nil {
			kept = append(kept, c)
		}
	}
	return kept
}

func downwards(grants map[Token]*claim) (tokens []Token) {
	for token := range grants {
		tokens = append(tokens, token)
	}
	slices.SortFunc(tokens, func(a, b Token) int { return cmp.Compare(b, a) })
	return tokens
}

func (m *model) refuse(now Time, w *claim, slots uint16) {
	m.tell(Reply{To: w.session, Ref: w.ref, Op: OpAcquire, Code: Mismatch, Slots: slots, Key: w.key.name, Ticket: w.ticket})
	m.drop(now, w, BySupersede)
}

// takeOver grants what c holds there: to the waiter of its ticket, if there is
// one.
func (m *model) takeOver(now Time, k *mkey, c *claim) {
	w := withTicket(k.queue, c.ticket)
	if w != nil && w.flags&Shared != c.flags&Shared {
		m.refuse(now, w, c.key.slots)
		w = nil
	}
	h := &claim{session: 0, origin: c.origin, ticket: c.ticket, flags: c.flags, lease: c.limit.Sub(now)}
	if w != nil {
		k.queue = without(k.queue, w)
		h = w
	}
	waited := now.Sub(h.since)
	h.key, h.token, h.since, h.limit, h.grace, h.bound, h.later = k, c.token, now, c.limit, Never, Never, false
	if m.connected(h.session) == 0 {
		h.session = 0
		if h.flags&Bound != 0 {
			h.bound = now.Add(m.cfg.ReattachGrace)
		}
	}
	m.ask(h)
	m.sets++
	h.set = m.sets
	k.holds = append(k.holds, h)
	slices.SortFunc(k.holds, func(a, b *claim) int { return cmp.Compare(a.token, b.token) })
	m.keys[string(k.name)] = k
	m.last = max(m.last, uint64(c.token)/8)
	m.event(Event{Kind: EventGrant, Key: k.name, Token: c.token, Lease: c.limit.Sub(now), Slots: k.slots,
		Flags: c.flags, Ticket: c.ticket, Origin: &h.origin})
	m.tell(Reply{To: h.session, Ref: h.ref, Op: OpAcquire, Code: Granted, Key: k.name, Token: c.token,
		Lease: c.limit.Sub(now), Waited: waited, Ticket: c.ticket})
}

// queueTheirs appends the waiters of the other node that nothing speaks against.
func (m *model) queueTheirs(now Time, k, theirs *mkey) (any bool) {
	for _, c := range theirs.queue {
		if c.limit <= now || k.slots != theirs.slots || withTicket(k.holds, c.ticket) != nil || withTicket(k.queue, c.ticket) != nil {
			continue
		}
		left := c.limit.Sub(now)
		if c.limit == Never {
			left = 0
		}
		m.keys[string(k.name)] = k
		w := &claim{key: k, origin: c.origin, ticket: c.ticket, flags: c.flags, lease: c.lease,
			since: now, limit: c.limit, grace: now.Add(m.cfg.ReattachGrace), bound: Never}
		m.sets++
		w.set = m.sets
		m.ask(w)
		k.queue = append(k.queue, w)
		m.event(Event{Kind: EventEnqueue, Key: k.name, Ticket: c.ticket, Lease: c.lease, Wait: left,
			Slots: k.slots, Flags: c.flags, Origin: &w.origin})
		any = true
	}
	return any
}

func (m *model) tellNews(k *mkey) {
	for _, h := range k.holds {
		if h.flags&Contended != 0 && len(k.queue) > 0 {
			m.contended(h)
		}
	}
}
