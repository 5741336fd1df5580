package locks

import (
	"cmp"
	"slices"
)

// View shows one key with at most maxHolders of its holders and maxWaiters of
// its queue. Claims that are due but not swept yet are shown with nothing left.
func (t *Table) View(now Time, key []byte, maxHolders, maxWaiters int) KeyView {
	v := KeyView{Key: string(key), Slots: 1}
	eid := t.find(key, t.hashKey(key))
	if eid == 0 {
		return v
	}
	k := t.entries.at(eid)
	v.Mode, v.Slots = t.mode(k), k.slots
	v.HoldersTotal, v.WaitersTotal = int(k.holders), int(k.waiters)
	holders := make([]*claim, 0, k.holders)
	t.eachHolder(k, func(_ uint32, c *claim) bool {
		holders = append(holders, c)
		return true
	})
	slices.SortFunc(holders, func(a, b *claim) int { return cmp.Compare(a.id, b.id) })
	for _, c := range holders[:min(len(holders), maxHolders)] {
		v.Holders = append(v.Holders, HolderView{
			Origin: *t.origins.at(c.origin), Session: c.session, Token: Token(c.id), Ticket: c.ticket,
			Shared: c.flags&Shared != 0, Since: c.since, Lease: max(c.deadline.Sub(now), 0),
		})
	}
	for id := k.qhead; id != 0 && len(v.Waiters) < maxWaiters; id = t.claims.at(id).next {
		v.Waiters = append(v.Waiters, t.viewWaiter(now, t.claims.at(id), len(v.Waiters)+1))
	}
	return v
}

func (t *Table) viewWaiter(now Time, c *claim, position int) WaiterView {
	w := WaiterView{
		Origin: *t.origins.at(c.origin), Session: c.session, Ticket: c.ticket,
		Shared: c.flags&Shared != 0, Position: position, Since: c.since, Connected: t.here(c.session),
	}
	if c.deadline != Never {
		w.Wait = max(c.deadline.Sub(now), 1) // 0 would mean no bound
	}
	return w
}

func (t *Table) mode(k *entry) Mode {
	switch {
	case k.root == 0:
		return ModeFree
	case k.slots > 1:
		return ModeSemaphore
	case t.sharedNow(k):
		return ModeShared
	}
	return ModeExclusive
}

// Scan calls fn for at most limit keys from cursor on and returns the next
// cursor, 0 at the end. Start with 0. A key that stands throughout a walk is
// seen exactly once. The row is fn's only during the call.
func (t *Table) Scan(cursor uint32, limit int, fn func(*Row)) uint32 {
	var r Row
	n := 0
	return t.walk(cursor, func(_ uint32, k *entry) bool {
		r = Row{
			Key: string(t.keyOf(k)), Waiters: k.waiters, Holders: uint32(k.holders),
			Slots: k.slots, Mode: t.mode(k),
		}
		if id := t.firstHolder(k); id != 0 {
			c := t.claims.at(id)
			r.Owner, r.Token, r.HeldSince, r.LeaseEnds = t.origins.at(c.origin).Owner, Token(c.id), c.since, c.deadline
		}
		if k.qhead != 0 {
			r.OldestWait = t.claims.at(k.qhead).since
		}
		fn(&r)
		n++
		return n < limit
	})
}

// firstHolder returns the holder that stands for all of a key's: the one of
// the lowest token among the first few hundred.
func (t *Table) firstHolder(k *entry) uint32 {
	if k.holders <= 1 {
		return k.root
	}
	var first uint32
	seen := 0
	t.eachHolder(k, func(id uint32, c *claim) bool {
		if first == 0 || c.id < t.claims.at(first).id {
			first = id
		}
		seen++
		return seen < 256
	})
	return first
}
