package locks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestMergeEitherWay lets two nodes that shared a state go apart, and merges
// each into the other: the same grants stand then on both, and merging again
// brings about nothing. A follower of each folds along.
func TestMergeEitherWay(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		a, b := apart(rnd, seed)
		now := max(a.now, b.now)
		var standing [2][]Token
		for i, pair := range [2][2]*world{{a, b}, {b, a}} {
			table, other := copied(pair[0].table, now, pair[0].table.cfg), copied(pair[1].table, now, pair[0].table.cfg)
			issued := max(table.counter, other.counter)
			follower, fx := copied(table, now, a.table.cfg), Effects{Record: true}
			table.Merge(now, other, &fx)
			if err := table.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for i := range fx.Events {
				if !follower.Apply(now, &fx.Events[i]) {
					t.Fatalf("seed %d: the follower refused %+v", seed, fx.Events[i])
				}
			}
			if got, want := replicated(follower, now), replicated(table, now); got != want || follower.Sum() != table.Sum() {
				t.Fatalf("seed %d: the follower has\n%swant\n%s", seed, got, want)
			}
			fx.Reset()
			if table.Merge(now, other, &fx); len(fx.Events) != 0 {
				t.Fatalf("seed %d: merging again: %+v", seed, fx.Events)
			}
			standing[i] = tokensUpTo(table, issued)
		}
		if !slices.Equal(standing[0], standing[1]) {
			t.Fatalf("seed %d: one way %d stand, the other way %d", seed, standing[0], standing[1])
		}
	}
}

// apart runs a table, copies it to a second node, and lets both go on alone.
func apart(rnd *rand.Rand, seed uint64) (a, b *world) {
	a = newWorld(seed)
	for range 60 {
		a.step(rnd)
	}
	b = newWorld(seed + 1)
	b.table.cfg.Rank, b.now = 1, a.now
	fill(b.table, a.table, a.now)
	b.tokens = slices.Clone(a.tokens)
	b.ref = a.ref
	for _, w := range []*world{a, b} {
		w.table.Activate(w.now, 0, &w.fx)
		w.now = w.now.Add(calmTime)
		w.table.Advance(w.now, 0, &w.fx)
		for range rnd.IntN(40) {
			w.step(rnd)
		}
	}
	for _, w := range []*world{a, b} { // nothing is due at the merge: a hand-over has a new token
		w.now = max(a.now, b.now)
		w.table.Advance(w.now, 0, &w.fx)
	}
	return a, b
}

func copied(from *Table, now Time, cfg Config) *Table {
	to := New(cfg)
	fill(to, from, now)
	return to
}

// fill gives a table what another has to tell.
func fill(to, from *Table, now Time) {
	var fx Effects
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = from.Snapshot(now, cursor, 7, &fx)
	}
	for i := range fx.Events {
		if !to.Apply(now, &fx.Events[i]) {
			panic(fmt.Sprintf("refused %+v", fx.Events[i]))
		}
	}
}

// tokensUpTo lists the standing tokens that were taken before the merge: whom a
// merge lets in depends on whose queue is the first.
func tokensUpTo(t *Table, counter uint64) []Token {
	found := map[Token]bool{}
	t.walk(1, func(_ uint32, k *entry) bool {
		t.eachHolder(k, func(_ uint32, c *claim) bool {
			if c.id>>3 <= counter {
				found[Token(c.id)] = true
			}
			return true
		})
		return true
	})
	return slices.Sorted(maps.Keys(found))
}

// A grant that was extended on one side only keeps that lease whichever way
// the states are merged.
func TestMergeLongerLease(t *testing.T) {
	cfg := DefaultConfig()
	grant := Event{Kind: EventGrant, Key: []byte("jobs"), Token: 16, Slots: 1, Lease: time.Second}
	longer := Event{Kind: EventExtend, Key: grant.Key, Token: 16, Lease: time.Minute}
	for _, extended := range []int{0, 1} {
		tables := []*Table{New(cfg), New(cfg)}
		for _, table := range tables {
			table.Apply(1, &grant)
		}
		tables[extended].Apply(1, &longer)
		var fx Effects
		tables[0].Merge(1, tables[1], &fx)
		if v := tables[0].View(1, grant.Key, 9, 9); v.Holders[0].Lease != time.Minute || fx.Seq != uint64(extended) {
			t.Errorf("extended on side %d: %v left after %d events", extended, v.Holders[0].Lease, fx.Seq)
		}
	}
}

// A key on which a grant ended there, and of which nothing is left, may take its
// memory along before the queues are served.
func TestMergeOfTheLastKeyOfItsChunk(t *testing.T) {
	cfg := DefaultConfig()
	cfg.KeepEnded = true
	table, other, fx := New(cfg), New(cfg), Effects{}
	grant := func(i int) *Event {
		return &Event{Kind: EventGrant, Key: fmt.Appendf(nil, "key/%d", i), Token: Token(8 * i), Slots: 1, Lease: time.Hour}
	}
	for i := 1; i <= chunkSize; i++ {
		table.Apply(1, grant(i))
	}
	table.Apply(1, &Event{Kind: EventEnd, Key: grant(1).Key, Token: 8, Reason: ByExpiry})
	last := grant(chunkSize)
	other.Apply(1, &Event{Kind: EventEnqueue, Key: last.Key, Ticket: Ticket{1}, Slots: 1, Lease: time.Hour, Wait: 1})
	other.Apply(1, &Event{Kind: EventEnded, Token: last.Token})
	table.Merge(2, other, &fx)
	if err := table.Check(); err != nil || table.Stats().Keys != chunkSize-2 {
		t.Errorf("%+v, %v", table.Stats(), err)
	}
}
