package locks_test

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	. "holdfast/internal/locks"
)

// follower is a table that only folds the events of another, on a clock of its
// own. What is replicated must be the same on both after every step. It begins
// empty; begin makes it start over, from a snapshot that comes in pieces while
// the table goes on.
type follower struct {
	table  *Table
	skew   time.Duration // its clock is ahead by this much
	cursor uint64        // of the next piece of the snapshot
	behind bool          // pieces are missing
	fx     Effects       // the pieces
}

func (f *follower) begin(cfg Config, skew time.Duration) {
	cfg.Rank = (cfg.Rank + 1) % 8
	cfg.Seed++
	cfg.ClockAtZero -= uint64(skew) / 500
	f.table, f.skew, f.cursor, f.behind = New(cfg), skew, 0, false
}

// restart begins anew with a snapshot.
func (f *follower) restart(cfg Config, skew time.Duration) {
	f.begin(cfg, skew)
	f.behind = true
}

// fold applies the events of a step, then the next piece of a snapshot, and
// compares the keys that the events name.
func (f *follower) fold(h *harness) error {
	for i := range h.fx.Events {
		if err := f.apply(h.now, &h.fx.Events[i], f.behind); err != nil {
			return err
		}
	}
	if f.behind {
		return f.piece(h)
	}
	for i := range h.fx.Events {
		key := h.fx.Events[i].Key
		if i+1 < len(h.fx.Events) && bytes.Equal(key, h.fx.Events[i+1].Key) {
			continue // once will do
		}
		if err := f.compare(h, key); err != nil {
			return err
		}
	}
	if got, want := f.table.Sum(), h.table.Sum(); got != want {
		return fmt.Errorf("its sum is %x, the table's %x", got, want)
	}
	// Of each rank the next token is above all that was taken.
	if got, want := f.table.Stats().Highest/8, h.table.Stats().Highest/8; got != want {
		return fmt.Errorf("its counter is at %d, the table's at %d", got, want)
	}
	return nil
}

// apply folds one event, whose key is overwritten afterwards.
func (f *follower) apply(now Time, e *Event, mayRefuse bool) error {
	lent := *e
	lent.Key = bytes.Clone(e.Key)
	if !f.table.Apply(now.Add(f.skew), &lent) && !mayRefuse {
		return fmt.Errorf("it refused %s", eventString(e))
	}
	for i := range lent.Key {
		lent.Key[i] = 0xff
	}
	return nil
}

// piece takes the next piece of the snapshot.
func (f *follower) piece(h *harness) error {
	f.cursor = h.table.Snapshot(h.now, f.cursor, 3, &f.fx)
	for i := range f.fx.Events {
		if err := f.apply(h.now, &f.fx.Events[i], false); err != nil {
			return err
		}
	}
	f.fx.Reset()
	if f.cursor != 0 {
		return nil
	}
	f.behind = false
	h.seen.snapshots++
	return f.compareAll(h)
}

// compareAll compares all that is replicated.
func (f *follower) compareAll(h *harness) error {
	if err := f.table.Check(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if f.behind {
		return nil
	}
	held, waiters := 0, 0
	for _, k := range h.model.keys {
		if err := f.compare(h, k.name); err != nil {
			return err
		}
		held += len(k.holds)
		for _, w := range k.queue {
			if !w.ticket.IsZero() {
				waiters++
			}
		}
	}
	if s := f.table.Stats(); s.Held != held || s.Waiters != waiters {
		return fmt.Errorf("it has %d grants and %d waiters, not %d and %d", s.Held, s.Waiters, held, waiters)
	}
	return nil
}

// compare compares what is replicated of one key.
func (f *follower) compare(h *harness, key []byte) error {
	if len(key) == 0 {
		return nil
	}
	want := replicated(h.table.View(h.now, key, 1<<20, 1<<20))
	got := replicated(f.table.View(h.now.Add(f.skew), key, 1<<20, 1<<20))
	return sameView(got, want)
}

// replicated leaves of a view what a follower knows too.
func replicated(v KeyView) KeyView {
	v.Waiters = slices.DeleteFunc(v.Waiters, func(w WaiterView) bool { return w.Ticket.IsZero() })
	v.WaitersTotal = len(v.Waiters)
	if len(v.Holders)+len(v.Waiters) == 0 {
		return KeyView{Key: v.Key}
	}
	for i := range v.Holders {
		v.Holders[i].Session, v.Holders[i].Since = 0, 0
	}
	for i := range v.Waiters {
		w := &v.Waiters[i]
		w.Session, w.Connected, w.Position, w.Since = 0, false, i+1, 0
	}
	return v
}
