package locks_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	. "holdfast/internal/locks"
)

// harness drives a table, the model beside it, and a follower that only folds
// the table's events, and reports the first difference.
type harness struct {
	table    *Table
	model    *model
	fx       Effects
	now      Time
	follower follower
	key      []byte // lent to the table, overwritten after each call
	origin   Origin // likewise
	batch    []Command
	steps    int
	walking  bool   // a promotion has left something to do
	walked   uint32 // how far that is done
	every    int    // the dear comparisons come every so many steps
	seen     *coverage
	log      func(fx *Effects) // sees all that the table answers; may be nil
}

func newHarness(cfg Config, seen *coverage) *harness {
	h := &harness{table: New(cfg), model: newModel(cfg), seen: seen, every: 1, now: 1}
	h.fx.Record = true
	h.follower.begin(cfg, 7*time.Second)
	h.table.Activate(h.now, 0, &h.fx)
	h.model.activate(h.now, 0)
	return h
}

// do runs one command and compares.
func (h *harness) do(c Command) error {
	h.steps++
	lent := c
	if c.Key != nil {
		h.key = append(h.key[:0], c.Key...)
		lent.Key = h.key
	}
	if c.Origin != nil {
		h.origin = *c.Origin
		lent.Origin = &h.origin
	}
	h.batch = append(h.batch[:0], lent)
	h.table.Prefetch(h.batch)
	h.table.Do(h.now, &h.batch[0], &h.fx)
	for h.fx.More {
		h.fx.More = false
		h.table.Do(h.now, &h.batch[0], &h.fx)
	}
	for i := range h.key {
		h.key[i] = 0xff
	}
	h.origin = Origin{Owner: "overwritten"}
	h.model.hint = h.fx.Events
	h.model.do(h.now, &c)
	h.seen.command(c.Op)
	if err := h.compare(); err != nil {
		return fmt.Errorf("%s at %d: %w", c.Op, h.now, err)
	}
	return nil
}

// advance does what fell due, at most most of it, and compares.
func (h *harness) advance(most int) error {
	h.steps++
	h.table.Advance(h.now, most, &h.fx)
	h.model.hint = h.fx.Events
	h.model.advance(h.now, most)
	if err := h.compare(); err != nil {
		return fmt.Errorf("advance at %d: %w", h.now, err)
	}
	return nil
}

// promote lets the follower take over, which begins to have a follower itself.
func (h *harness) promote() error {
	if err := h.advance(0); err != nil {
		return err
	}
	h.steps++
	skew := h.follower.skew
	h.now, h.table = h.now.Add(skew), h.follower.table
	for name := range h.model.keys {
		h.model.takeSince(h.table.View(h.now, []byte(name), 1<<20, 1<<20))
	}
	h.table.Activate(h.now, 0, &h.fx)
	h.model.promote(h.now, (h.model.cfg.Rank+1)%8, skew)
	h.walking, h.walked = true, 0
	h.seen.promotions++
	h.follower.restart(h.model.cfg, skew/2)
	if err := h.compare(); err != nil {
		return fmt.Errorf("promotion at %d: %w", h.now, err)
	}
	return nil
}

// stepDown ends the table's reign. It must know then what its follower knows.
func (h *harness) stepDown() error {
	h.steps++
	h.table.StepDown(&h.fx)
	h.model.stepDown()
	h.walking = false
	byRequest := func(a, b Reply) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Ref, b.Ref), bytes.Compare(a.Key, b.Key), bytes.Compare(a.Ticket[:], b.Ticket[:]))
	}
	slices.SortFunc(h.fx.Replies, byRequest)
	slices.SortFunc(h.model.replies, byRequest)
	if err := h.compare(); err != nil {
		return fmt.Errorf("stepping down at %d: %w", h.now, err)
	}
	return h.compareAll()
}

// activate begins another reign of the same table.
func (h *harness) activate() error {
	h.steps++
	h.table.Activate(h.now, 0, &h.fx)
	h.model.reign(h.now)
	h.walking, h.walked = len(h.model.keys) > 0, 0
	if err := h.compare(); err != nil {
		return fmt.Errorf("activation at %d: %w", h.now, err)
	}
	return nil
}

// rouse lets the table and the model do more of what the promotion left to do.
// A walk over the keys that looks only sees them in the same order.
func (h *harness) rouse(limit int) error {
	h.steps++
	var names []string
	if h.walking {
		h.walked = h.table.Scan(h.walked, limit, func(r *Row) { names = append(names, r.Key) })
	}
	if more := h.table.Rouse(h.now, limit, &h.fx); more != (h.walked != 0) {
		return fmt.Errorf("rouse says %v, the walk is at %d", more, h.walked)
	}
	h.walking = h.walked != 0
	for _, name := range names {
		h.model.rouse(h.now, h.model.keys[name])
	}
	if err := h.compare(); err != nil {
		return fmt.Errorf("rouse at %d: %w", h.now, err)
	}
	return nil
}

func (h *harness) compare() error {
	if h.log != nil {
		h.log(&h.fx)
	}
	defer h.model.reset()
	defer h.fx.Reset()
	inTokenOrder(h.fx.Replies)
	positions(h.fx.Replies, h.model.replies, h.model.waitersOn)
	if err := sameReplies(h.fx.Replies, h.model.replies); err != nil {
		return err
	}
	if err := sameEvents(h.fx.Events, h.model.events); err != nil {
		return err
	}
	h.seen.effects(&h.fx)
	if got, want := h.table.Stats(), h.model.stats(); got != want {
		return fmt.Errorf("stats: table %+v, model %+v", got, want)
	}
	if err := h.follower.fold(h); err != nil {
		return fmt.Errorf("follower: %w", err)
	}
	if h.steps%h.every == 0 {
		return h.compareAll()
	}
	return nil
}

// compareAll compares everything there is to see, and lets both tables check
// themselves.
func (h *harness) compareAll() error {
	if err := h.table.Check(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if got, want := h.table.Next(), h.model.next(); got != want && !h.walking {
		return fmt.Errorf("next: table %d, model %d", got, want)
	}
	if err := h.compareViews(); err != nil {
		return err
	}
	if err := h.compareWalk(); err != nil {
		return err
	}
	if err := h.follower.compareAll(h); err != nil {
		return fmt.Errorf("follower: %w", err)
	}
	return nil
}

func (h *harness) compareViews() error {
	for _, k := range h.model.keys {
		got := h.table.View(h.now, k.name, 1<<20, 1<<20)
		for i := range got.Holders {
			got.Holders[i].Session = h.model.connected(got.Holders[i].Session)
		}
		if err := sameView(got, h.model.view(h.now, k)); err != nil {
			return err
		}
	}
	return nil
}

// compareWalk walks the table in pieces.
func (h *harness) compareWalk() error {
	got := map[string]Row{}
	var twice string
	for cursor, first := uint32(0), true; cursor != 0 || first; first = false {
		cursor = h.table.Scan(cursor, 1+h.steps%5, func(r *Row) {
			if _, ok := got[r.Key]; ok {
				twice = r.Key
			}
			got[r.Key] = *r
		})
	}
	if twice != "" {
		return fmt.Errorf("the walk shows %q twice", twice)
	}
	for _, k := range h.model.keys {
		if want := h.model.row(k); got[string(k.name)] != want {
			return fmt.Errorf("the walk shows\n  %+v, model\n  %+v", got[string(k.name)], want)
		}
	}
	if len(got) != len(h.model.keys) {
		return fmt.Errorf("the walk shows %d keys, not %d", len(got), len(h.model.keys))
	}
	return nil
}
