package locks_test

import (
	"time"

	. "holdfast/internal/locks"
)

func (k *mkey) mode() Mode {
	switch {
	case k.slots > 1:
		return ModeSemaphore
	case len(k.holds) == 0:
		return ModeFree
	case k.holds[0].flags&Shared != 0:
		return ModeShared
	}
	return ModeExclusive
}

// view shows a key on which something stands, whole.
func (m *model) view(now Time, k *mkey) KeyView {
	v := KeyView{Key: string(k.name), Mode: k.mode(), Slots: k.slots,
		HoldersTotal: len(k.holds), WaitersTotal: len(k.queue)}
	for _, h := range k.holds {
		v.Holders = append(v.Holders, HolderView{Origin: h.origin, Session: m.connected(h.session), Token: h.token,
			Ticket: h.ticket, Shared: h.flags&Shared != 0, Since: h.since, Lease: max(h.limit.Sub(now), 0)})
	}
	for i, w := range k.queue {
		v.Waiters = append(v.Waiters, WaiterView{Origin: w.origin, Session: m.connected(w.session), Ticket: w.ticket,
			Shared: w.flags&Shared != 0, Position: i + 1, Since: w.since, Wait: w.waitLeft(now),
			Connected: m.connected(w.session) != 0})
	}
	return v
}

func (w *claim) waitLeft(now Time) time.Duration {
	if w.limit == Never {
		return 0
	}
	return max(w.limit.Sub(now), 1)
}

// connected returns s, or 0 if that session is gone.
func (m *model) connected(s Session) Session {
	if _, here := m.sessions[s]; here {
		return s
	}
	return 0
}

// row is what a walk shows of k.
func (m *model) row(k *mkey) Row {
	r := Row{Key: string(k.name), Mode: k.mode(), Slots: k.slots,
		Holders: uint32(len(k.holds)), Waiters: uint32(len(k.queue))}
	if len(k.holds) > 0 {
		h := k.holds[0]
		r.Owner, r.Token, r.HeldSince, r.LeaseEnds = h.origin.Owner, h.token, h.since, h.limit
	}
	if len(k.queue) > 0 {
		r.OldestWait = k.queue[0].since
	}
	return r
}

// takeSince takes over since when what stands on a key stands there: of what a
// follower learnt from a snapshot, it knows no more than that.
func (m *model) takeSince(v KeyView) {
	k := m.keys[v.Key]
	for _, h := range v.Holders {
		k.holder(h.Token).since = h.Since
	}
	for _, w := range v.Waiters {
		withTicket(k.queue, w.Ticket).since = w.Since
	}
}
