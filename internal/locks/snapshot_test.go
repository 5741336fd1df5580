package locks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSnapshotInTheStream takes a snapshot in small pieces while the table goes
// on, with every piece and every event in one stream, and compares the follower
// that folded the stream with the table.
func TestSnapshotInTheStream(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(seed)
		for range 400 {
			w.step(rnd)
		}
		follower := New(w.table.cfg)
		w.step(rnd)
		stale := Event{Kind: EventGrant, Key: []byte("stale"), Token: 8, Slots: 1, Lease: time.Hour}
		follower.Apply(w.now, &stale) // a snapshot replaces what was there
		w.fx.Reset()
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			cursor = w.table.Snapshot(w.now, cursor, 3, &w.fx)
			for range rnd.IntN(6) {
				w.step(rnd)
			}
			w.feed(follower)
		}
		for range 50 {
			w.step(rnd)
		}
		w.feed(follower)
		if err := follower.Check(); err != nil {
			t.Fatalf("seed %d: follower: %v", seed, err)
		}
		if got, want := follower.Sum(), w.table.Sum(); got != want {
			t.Fatalf("seed %d: the follower's sum is %x, not %x", seed, got, want)
		}
		if got, want := replicated(follower, w.now), replicated(w.table, w.now); got != want {
			t.Fatalf("seed %d: the follower has\n%swant\n%s", seed, got, want)
		}
	}
}

// world is a small table with a few sessions that do everything at random.
type world struct {
	table  *Table
	fx     Effects
	now    Time
	tokens []Command // grants to release or extend
	ref    uint64
}

func newWorld(seed uint64) *world {
	cfg := DefaultConfig()
	cfg.Seed, cfg.KeepEnded = seed, true
	w := &world{table: New(cfg)}
	w.fx.Record = true
	w.table.Activate(0, 0, &w.fx)
	for s := Session(1); s <= 4; s++ {
		w.table.Do(0, &Command{Op: OpAttach, Session: s, Origin: &Origin{Owner: fmt.Sprint(s)}}, &w.fx)
	}
	return w
}

func (w *world) step(rnd *rand.Rand) {
	w.now += Time(rnd.IntN(300)) * Time(time.Millisecond)
	w.table.Advance(w.now, 0, &w.fx)
	key := []byte(fmt.Sprintf("a key that does not fit inline %d", rnd.IntN(12)))
	c := Command{Session: Session(rnd.IntN(4) + 1), Key: key[rnd.IntN(2)*12:]}
	switch {
	case len(w.tokens) > 0 && rnd.IntN(3) == 0:
		i := rnd.IntN(len(w.tokens))
		c = w.tokens[i]
		w.tokens[i] = w.tokens[len(w.tokens)-1]
		w.tokens = w.tokens[:len(w.tokens)-1]
		c.Op = [...]Op{OpRelease, OpExtend}[rnd.IntN(2)]
	default:
		w.ref++
		c.Op, c.Ref = OpAcquire, w.ref
		c.Lease = time.Duration(rnd.IntN(20)+1) * time.Second
		c.Wait = time.Duration(rnd.IntN(20)) * time.Second
		c.Flags = Flags(rnd.IntN(2)) * Shared
		if rnd.IntN(3) > 0 {
			c.Ticket[0], c.Ticket[1] = byte(w.ref), byte(w.ref>>8)|1
		}
	}
	w.table.Do(w.now, &c, &w.fx)
	if rnd.IntN(40) == 0 {
		_, next := w.table.Ended()
		w.table.TrimEnded(next-min(next, uint64(rnd.IntN(10))), &w.fx)
	}
	for _, r := range w.fx.Replies {
		if r.Code == Granted {
			w.tokens = append(w.tokens, Command{Session: r.To, Key: append([]byte(nil), r.Key...), Token: r.Token})
		}
	}
	w.fx.Replies = w.fx.Replies[:0]
}

func (w *world) feed(follower *Table) {
	for i := range w.fx.Events {
		follower.Apply(w.now, &w.fx.Events[i])
	}
	w.fx.Reset()
}

// replicated prints what a follower has to know of a table, in one order.
func replicated(t *Table, now Time) string {
	rows := map[string]string{}
	var keys []string
	t.Scan(0, 1<<30, func(r *Row) { keys = append(keys, r.Key) })
	for _, key := range keys {
		v := t.View(now, []byte(key), 1<<30, 1<<30)
		line := fmt.Sprintf("%q slots=%d", v.Key, v.Slots)
		for _, h := range v.Holders {
			line += fmt.Sprintf(" holds %d %x %v %s", h.Token, h.Ticket[:2], h.Shared, h.Origin.Owner)
		}
		for _, q := range v.Waiters {
			if !q.Ticket.IsZero() {
				line += fmt.Sprintf(" waits %x %v %s", q.Ticket[:2], q.Shared, q.Origin.Owner)
			}
		}
		rows[key] = line
	}
	first, next := t.Ended()
	out := fmt.Sprintf("ended %d to %d:", first, next)
	for i := first; i < next; i++ {
		out += fmt.Sprintf(" %d", *t.ended.at(i))
	}
	out += "\n"
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		out += rows[key] + "\n"
	}
	return out
}
