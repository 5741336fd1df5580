package locks_test

import (
	"fmt"
	"testing"
	"time"

	. "holdfast/internal/locks"
)

// An epoch is above the floor, whatever rank that has, above the token clock,
// and above all that was taken before.
func TestActivate(t *testing.T) {
	for _, test := range []struct {
		clock        uint64
		floor, epoch Token
	}{
		{clock: 0, floor: 0, epoch: 8*1 + 3},
		{clock: 0, floor: 8*1000 + 7, epoch: 8*1001 + 3},
		{clock: 0, floor: 8 * 1000, epoch: 8*1001 + 3},
		{clock: 5000, floor: 8*1000 + 7, epoch: 8*5000 + 3},
		{clock: 5000, floor: 8*5000 + 1, epoch: 8*5001 + 3},
	} {
		cfg := DefaultConfig()
		cfg.Rank, cfg.ClockAtZero = 3, test.clock
		table, fx := New(cfg), Effects{Record: true}
		if got := table.Activate(0, test.floor, &fx); got != test.epoch || table.Stats().Highest != got {
			t.Errorf("clock %d, floor %d: epoch %d, not %d", test.clock, test.floor, got, test.epoch)
		}
		if len(fx.Events) != 1 || fx.Events[0].Kind != EventEpoch || fx.Events[0].Token != test.epoch {
			t.Errorf("events %+v", fx.Events)
		}
		if again := table.Activate(0, 0, &fx); again != test.epoch+8 {
			t.Errorf("the next epoch is %d after %d", again, test.epoch)
		}
	}
}

// C-64: an event that does not fit is refused and changes nothing.
func TestApplyRefuses(t *testing.T) {
	follower := New(DefaultConfig())
	grant := func(key string, token Token, change func(e *Event)) *Event {
		e := &Event{Kind: EventGrant, Key: []byte(key), Token: token, Lease: time.Minute, Slots: 1}
		change(e)
		return e
	}
	enqueue := func(key string, n int, change func(e *Event)) *Event {
		e := &Event{Kind: EventEnqueue, Key: []byte(key), Ticket: ticket(n), Lease: time.Minute, Slots: 1}
		change(e)
		return e
	}
	plain := func(*Event) {}
	shared := func(e *Event) { e.Flags = Shared }
	slots := func(n uint16) func(e *Event) { return func(e *Event) { e.Slots = n } }
	for _, e := range []*Event{
		grant("held", 8, func(e *Event) { e.Ticket = ticket(1) }), enqueue("held", 2, plain), enqueue("held", 3, plain),
		grant("shared", 16, shared), grant("shared", 24, shared),
		grant("pool", 32, slots(2)), grant("pool", 40, slots(2)),
	} {
		if !follower.Apply(1, e) {
			t.Fatalf("refused %s", eventString(e))
		}
	}
	before := state(follower)
	for what, e := range map[string]*Event{
		"no kind":                        {Key: []byte("held")},
		"an unknown kind":                {Kind: 99, Key: []byte("held")},
		"a grant without a token":        grant("free", 0, plain),
		"a grant without a key":          grant("", 48, plain),
		"a grant of too long a key":      grant(string(make([]byte, MaxKeyLength+1)), 48, plain),
		"a grant without slots":          grant("free", 48, slots(0)),
		"a shared grant with slots":      grant("free", 48, func(e *Event) { e.Slots, e.Flags = 2, Shared }),
		"a grant that stands":            grant("held", 8, plain),
		"a second exclusive grant":       grant("held", 48, plain),
		"a shared grant beside it":       grant("held", 48, shared),
		"an exclusive one beside shared": grant("shared", 48, plain),
		"one that stands among shared":   grant("shared", 24, shared),
		"a third of two slots":           grant("pool", 48, slots(2)),
		"other slots":                    grant("pool", 48, slots(3)),
		"a waiter granted too early":     grant("held", 48, func(e *Event) { e.Ticket = ticket(2) }),
		"a ticket that holds":            grant("held", 48, func(e *Event) { e.Ticket = ticket(1) }),
		"an extension of a free key":     {Kind: EventExtend, Key: []byte("free"), Token: 8, Lease: time.Hour},
		"an extension of no holder":      {Kind: EventExtend, Key: []byte("held"), Token: 16, Lease: time.Hour},
		"the end of a free key":          {Kind: EventEnd, Key: []byte("free"), Token: 8},
		"the end of no holder":           {Kind: EventEnd, Key: []byte("shared"), Token: 8},
		"a waiter without a ticket":      enqueue("held", 9, func(e *Event) { e.Ticket = Ticket{} }),
		"a waiter that waits":            enqueue("held", 2, plain),
		"a waiter that holds":            enqueue("held", 1, plain),
		"a waiter with other slots":      enqueue("pool", 9, plain),
		"the leaving of nobody":          {Kind: EventDequeue, Key: []byte("held"), Ticket: ticket(9)},
		"the leaving of a holder":        {Kind: EventDequeue, Key: []byte("held"), Ticket: ticket(1)},
		"the leaving of no ticket":       {Kind: EventDequeue, Key: []byte("held")},
		"the leaving of a free key":      {Kind: EventDequeue, Key: []byte("free"), Ticket: ticket(2)},
	} {
		if follower.Apply(2, e) {
			t.Errorf("%s was taken", what)
		}
		if after := state(follower); after != before {
			t.Errorf("%s changed\n%s to\n%s", what, before, after)
		}
		if err := follower.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// state tells all that stands in a table.
func state(table *Table) (s string) {
	for _, key := range []string{"held", "shared", "pool", "free"} {
		s += fmt.Sprintf("%+v\n", table.View(3, []byte(key), 10, 10))
	}
	return s + fmt.Sprintf("%+v", table.Stats())
}

// Events are counted whether or not they are recorded, and Reset keeps the
// count.
func TestSeqWithoutRecord(t *testing.T) {
	recorded, counted := newCrowd(t, DefaultConfig(), 3), newCrowd(t, DefaultConfig(), 3)
	recorded.fx.Record = true
	events := 1 // the epoch
	for i := range 100 {
		for _, c := range []*crowd{recorded, counted} {
			c.do(Command{Op: OpAcquire, Session: client(1 + i%2), Key: []byte("jobs"), Ticket: ticket(i + 1), Wait: time.Second, Lease: ms})
			if len(c.fx.Events) > 0 && c == counted {
				t.Fatal("recorded though nobody asked for it")
			}
			events += len(c.fx.Events)
			c.now = c.now.Add(ms / 3)
		}
	}
	if recorded.fx.Seq != uint64(events) || counted.fx.Seq != uint64(events) {
		t.Errorf("%d events, counted %d and %d", events, recorded.fx.Seq, counted.fx.Seq)
	}
}

// What an Effects holds stays right until its Reset, however much comes.
func TestEffectsOwnTheirKeys(t *testing.T) {
	c := newCrowd(t, DefaultConfig(), 2)
	c.fx.Reset()
	c.fx.Record = true
	key := make([]byte, 0, 64)
	for i := range 5000 {
		key = fmt.Appendf(key[:0], "key/%d/%0*d", i, i%40, 0)
		c.Do(c.now, &Command{Op: OpAcquire, Session: client(1), Key: key}, &c.fx)
	}
	for i := range c.fx.Replies {
		want := fmt.Sprintf("key/%d/%0*d", i, i%40, 0)
		if string(c.fx.Replies[i].Key) != want || string(c.fx.Events[i].Key) != want {
			t.Fatalf("%q and %q, not %q", c.fx.Replies[i].Key, c.fx.Events[i].Key, want)
		}
		_ = append(c.fx.Replies[i].Key, "must not reach the next"...)
	}
}

// A view shows as much as was asked for, and says how much there is.
func TestViewLimits(t *testing.T) {
	c := newCrowd(t, DefaultConfig(), 2)
	k := []byte("pool")
	var tokens []Token
	for range 5 {
		tokens = append(tokens, c.want(Granted, Command{Op: OpAcquire, Session: client(1), Key: k, Slots: 5}).Token)
	}
	for i := range 7 {
		c.want(Queued, Command{Op: OpAcquire, Session: client(1), Key: k, Slots: 5, Ticket: ticket(i + 1)})
	}
	v := c.View(c.now, k, 2, 3)
	if v.HoldersTotal != 5 || v.WaitersTotal != 7 || len(v.Holders) != 2 || len(v.Waiters) != 3 {
		t.Fatalf("%+v", v)
	}
	if v.Holders[0].Token != tokens[0] || v.Holders[1].Token != tokens[1] || v.Waiters[2].Ticket != ticket(3) {
		t.Errorf("not the first: %+v", v)
	}
	if v := c.View(c.now, []byte("free"), 2, 3); v.Mode != ModeFree || v.HoldersTotal+v.WaitersTotal != 0 {
		t.Errorf("%+v", v)
	}
}
