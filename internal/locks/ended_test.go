package locks_test

import (
	"testing"
	"time"

	. "holdfast/internal/locks"
)

func keeping() Config {
	cfg := DefaultConfig()
	cfg.KeepEnded = true
	return cfg
}

// The ended set is bounded: the oldest go, many at once, and a follower that
// folds the events has the same bounds.
func TestEndedBound(t *testing.T) {
	c := newCrowd(t, keeping(), 2)
	c.fx.Record = true
	follower := New(keeping())
	acquire := Command{Op: OpAcquire, Session: client(1), Key: []byte("jobs")}
	release := Command{Op: OpRelease, Session: client(1), Key: acquire.Key}
	trims := 0
	for range MaxEnded + MaxEnded/10 {
		c.fx.Reset()
		c.Do(c.now, &acquire, &c.fx)
		release.Token = c.fx.Replies[0].Token
		c.Do(c.now, &release, &c.fx)
		for i := range c.fx.Events {
			if c.fx.Events[i].Kind == EventTrim {
				trims++
			}
			if !follower.Apply(c.now, &c.fx.Events[i]) {
				t.Fatalf("refused %s", eventString(&c.fx.Events[i]))
			}
		}
	}
	first, next := c.Ended()
	if kept := next - first; kept > MaxEnded || kept < MaxEnded-MaxEnded/32 || next != MaxEnded+MaxEnded/10+1 {
		t.Errorf("places %d to %d", first, next)
	}
	if trims < 6 || trims > 7 {
		t.Errorf("%d trims for a tenth of it", trims)
	}
	if f, n := follower.Ended(); f != first || n != next || follower.Sum() != c.Sum() {
		t.Errorf("the follower has places %d to %d, not %d to %d", f, n, first, next)
	}
}

// Without peers nothing is recorded, whatever the events say.
func TestEndedNotKept(t *testing.T) {
	table, fx := New(DefaultConfig()), Effects{}
	for _, e := range []Event{
		{Kind: EventGrant, Key: []byte("k"), Token: 8, Slots: 1, Lease: time.Hour},
		{Kind: EventEnd, Key: []byte("k"), Token: 8, Reason: ByRelease},
		{Kind: EventEnded, Token: 16}, {Kind: EventTrim, Index: 7}, {Kind: EventClear, Index: 9},
	} {
		if !table.Apply(1, &e) {
			t.Errorf("refused %s", eventString(&e))
		}
	}
	table.TrimEnded(9, &fx)
	if first, next := table.Ended(); first != 1 || next != 1 || fx.Seq != 0 {
		t.Errorf("places %d to %d after %d events", first, next, fx.Seq)
	}
}

// C-64: what does not fit the ended set is refused, and makes no room for more
// than it may hold.
func TestEndedRefuses(t *testing.T) {
	table := New(keeping())
	apply := func(e Event) bool { return table.Apply(1, &e) }
	if !apply(Event{Kind: EventClear, Index: 3_000_000}) || !apply(Event{Kind: EventTrim, Index: 2_999_990}) {
		t.Fatal("the beginning of a snapshot was refused")
	}
	for what, e := range map[string]Event{
		"a place that is not there yet":   {Kind: EventEnded, Token: 8, Index: 3_000_000},
		"no token":                        {Kind: EventEnded, Index: 2_999_995},
		"a beginning behind the end":      {Kind: EventTrim, Index: 3_000_001},
		"no beginning":                    {Kind: EventTrim},
		"a beginning before what is kept": {Kind: EventTrim, Index: 2_999_989},
		"numbers that run out":            {Kind: EventClear, Index: 1 << 62},
	} {
		if apply(e) {
			t.Errorf("%s was taken", what)
		}
		if first, next := table.Ended(); first != 2_999_990 || next != 3_000_000 {
			t.Fatalf("%s left places %d to %d", what, first, next)
		}
	}
	if !apply(Event{Kind: EventEnded, Token: 8, Index: 5}) {
		t.Error("a place that was trimmed meanwhile was refused")
	}
	if apply(Event{Kind: EventClear, Index: 5_000_000}); apply(Event{Kind: EventTrim, Index: 1}) {
		t.Error("room for five million was taken")
	}
	if apply(Event{Kind: EventEnd, Key: []byte("unknown"), Token: 8, Reason: ByRelease}) {
		t.Error("the end of an unknown grant counts as fitting")
	}
	if apply(Event{Kind: EventEnd, Key: []byte("unknown"), Token: 16, Reason: ByExpiry}); true {
		if first, next := table.Ended(); first != 5_000_000 || next != 5_000_001 {
			t.Errorf("places %d to %d, not the one that was released", first, next)
		}
	}
}
