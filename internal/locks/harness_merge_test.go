package locks_test

import (
	"fmt"
	"slices"

	. "holdfast/internal/locks"
)

// merge lets the table and the model take over the same.
func (h *harness) merge(theirs []Event) error {
	h.steps++
	h.lookAhead()
	other := New(h.model.cfg)
	for i := range theirs {
		if !other.Apply(h.now, &theirs[i]) {
			theirs[i].Kind = EventReset // it did not fit
		}
	}
	theirs = slices.DeleteFunc(theirs, func(e Event) bool { return e.Kind == EventReset })
	var order []string
	h.table.Scan(0, 1<<30, func(r *Row) { order = append(order, r.Key) })
	h.table.Merge(h.now, other, &h.fx)
	h.model.hint = h.fx.Events
	h.model.merge(h.now, theirs, order)
	h.follower.table.Hear(other.Stats().Highest) // that it was heard is no event
	h.seen.merges++
	if err := h.compare(); err != nil {
		for i := range theirs {
			err = fmt.Errorf("%w\n  offered %s", err, eventString(&theirs[i]))
		}
		return fmt.Errorf("merge at %d: %w", h.now, err)
	}
	if h.model.cfg.ReattachGrace == 0 { // what nobody is connected to is over at once
		return nil
	}
	h.table.Merge(h.now, other, &h.fx)
	if err := h.compare(); err != nil {
		return fmt.Errorf("merging again at %d: %w", h.now, err)
	}
	return h.compareAll()
}

// offer draws what another node has: grants and ends that stand here, and
// grants and waiters that do not.
func (d *drawer) offer() (events []Event) {
	for range 1 + d.pick(8) {
		e := Event{Kind: EventGrant, Key: one(d, d.names), Slots: max(one(d, d.p.slots), 1), Lease: one(d, d.p.leases),
			Origin: one(d, origins)}
		e.Token = Token(max(int(d.model.last)*8+d.pick(400)-200, 1))
		if g, ok := d.grants.some(d.pick); ok && d.chance(40) {
			e.Key, e.Token, e.Ticket = g.Key, g.Token, g.Ticket
		} else if w, ok := d.waits.some(d.pick); ok && d.chance(30) { // it waits here and holds there
			e.Key, e.Ticket, e.Token = w.Key, w.Ticket, Token(d.model.last*8)+Token(1+d.pick(200))
		} else if d.chance(d.p.ticketed) && d.p.tickets > 0 {
			e.Ticket = Ticket{0, byte(1 + d.pick(min(d.p.tickets, 200))), 15: 1}
		}
		if k := d.model.keys[string(e.Key)]; k != nil && d.chance(70) {
			e.Slots = k.slots
		}
		if e.Slots == 1 && d.chance(d.p.shared) {
			e.Flags |= Shared
		}
		for flag, percent := range []int{Bound: d.p.bound, Contended: d.p.push} {
			if d.chance(percent) {
				e.Flags |= Flags(flag)
			}
		}
		switch d.pick(4) {
		case 0:
			e.Kind, e.Token, e.Wait, e.Lease = EventEnqueue, 0, one(d, d.p.waits), max(e.Lease, ms)
			if w, ok := d.waits.some(d.pick); ok && d.chance(40) {
				e.Key, e.Ticket = w.Key, w.Ticket
			}
		case 1:
			e = Event{Kind: EventEnded, Token: e.Token}
		}
		events = append(events, e)
	}
	return events
}
