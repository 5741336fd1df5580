package locks_test

import (
	"fmt"
	"testing"
	"time"

	. "holdfast/internal/locks"
)

// promoted is a follower's table with a holder and a ticketed waiter on each of
// n keys, activated at one second.
func promoted(t testing.TB, n int) *crowd {
	t.Helper()
	c := newCrowd(t, keeping(), 0)
	for i := range n {
		key := fmt.Appendf(nil, "key/%d", i)
		for _, e := range []Event{
			{Kind: EventGrant, Key: key, Token: Token(8*i + 8), Slots: 1, Lease: time.Hour, Flags: Bound},
			{Kind: EventEnqueue, Key: key, Ticket: ticket(i + 1), Slots: 1, Lease: time.Hour},
		} {
			if !c.Apply(c.now, &e) {
				t.Fatalf("refused %s", eventString(&e))
			}
		}
	}
	c.Activate(c.now, 0, &c.fx)
	return c
}

// Activate leaves the walk to Rouse, which looks at as many keys as it is told.
func TestRouseInPieces(t *testing.T) {
	c := promoted(t, 1000)
	pieces := 1
	for c.Rouse(c.now, 10, &c.fx) {
		pieces++
	}
	if pieces != 101 { // the last finds that nothing is left
		t.Errorf("%d pieces", pieces)
	}
	c.check()
	if c.Rouse(c.now, 0, &c.fx) {
		t.Error("there is more after the end")
	}
	c.fx.Reset()
	c.now = c.now.Add(DefaultConfig().ReattachGrace)
	if c.Advance(c.now, 0, &c.fx); c.Stats().Held+c.Stats().Waiters != 0 {
		t.Errorf("%+v after the grace", c.Stats())
	}
	c.check()
}

// A node that steps down with 100,000 who wait tells each of them, and is a
// follower afterwards.
func TestStepDownOfMany(t *testing.T) {
	const waiters = 100_000
	cfg := keeping()
	cfg.MaxWaitersPerKey = waiters
	c := newCrowd(t, cfg, waiters+1)
	c.fx.Record = true
	follower := New(keeping())
	do := func(cmd Command) {
		c.do(cmd)
		for i := range c.fx.Events {
			if !follower.Apply(c.now, &c.fx.Events[i]) {
				t.Fatalf("refused %s", eventString(&c.fx.Events[i]))
			}
		}
	}
	k := []byte("jobs")
	do(Command{Op: OpAcquire, Session: client(waiters), Key: k, Flags: Bound, Lease: time.Hour})
	for i := range waiters {
		cmd := Command{Op: OpAcquire, Session: client(i), Ref: uint64(i), Key: k}
		if i%2 == 0 {
			cmd.Ticket = ticket(i + 1)
		}
		do(cmd)
	}
	c.fx.Reset()
	c.StepDown(&c.fx)
	for i := range c.fx.Replies {
		if r := &c.fx.Replies[i]; r.Code != Moved || r.Op != OpAcquire || r.To != client(i) || r.Ref != uint64(i) || string(r.Key) != "jobs" {
			t.Fatalf("reply %d: %+v", i, r)
		}
	}
	if len(c.fx.Replies) != waiters || len(c.fx.Events) != 0 || c.Sum() != follower.Sum() || c.Stats() != follower.Stats() {
		t.Errorf("%d replies, %d events, %+v, follower %+v", len(c.fx.Replies), len(c.fx.Events), c.Stats(), follower.Stats())
	}
	if err := sameView(replicated(c.View(c.now, k, 9, waiters)), replicated(follower.View(c.now, k, 9, waiters))); err != nil {
		t.Error(err)
	}
	c.check()
	for i := range waiters + 1 {
		if replies := c.do(Command{Op: OpDetach, Session: client(i)}); len(replies)+len(c.fx.Events) != 0 {
			t.Fatalf("detaching session %d: %+v", i, replies)
		}
	}
	c.check()
}

// Two tables with the same state have the same sum, whatever the seed of their
// hash tables and the way there; whatever is added changes it.
func TestSum(t *testing.T) {
	sums := map[uint64]string{}
	tell := func(what string, c *crowd) {
		if other, ok := sums[c.Sum()]; ok {
			t.Errorf("the same sum with %s and with %s", what, other)
		}
		sums[c.Sum()] = what
	}
	with := func(seed uint64, commands ...Command) *crowd {
		cfg := keeping()
		cfg.Seed = seed
		c := newCrowd(t, cfg, 2)
		for i := range commands {
			commands[i].Session = client(1)
			c.do(commands[i])
		}
		return c
	}
	held := Command{Op: OpAcquire, Key: []byte("jobs")}
	queued := Command{Op: OpAcquire, Key: []byte("jobs"), Ticket: ticket(1)}
	tell("nothing", with(1))
	tell("a grant", with(1, held))
	tell("a waiter", with(1, held, queued))
	tell("another ticket", with(1, held, Command{Op: OpAcquire, Key: []byte("jobs"), Ticket: ticket(2)}))
	tell("another key", with(1, Command{Op: OpAcquire, Key: []byte("jobz")}))
	tell("a longer key", with(1, Command{Op: OpAcquire, Key: []byte("jobs and more")}))
	tell("shared", with(1, Command{Op: OpAcquire, Key: []byte("jobs"), Flags: Shared}))
	tell("slots", with(1, Command{Op: OpAcquire, Key: []byte("jobs"), Slots: 2}))
	if a, b := with(1, held, queued), with(2, held, queued); a.Sum() != b.Sum() {
		t.Error("the seed changes the sum")
	}
	if a, b := with(1, held, queued), with(1, held, queued, Command{Op: OpAcquire, Key: []byte("jobs")}); a.Sum() != b.Sum() {
		t.Error("a waiter without a ticket changes the sum")
	}
	c := with(1, held, queued)
	before := c.Sum()
	c.do(Command{Op: OpCancelTicket, Session: client(1), Key: held.Key, Ticket: ticket(1)})
	c.do(queued)
	if c.Sum() != before {
		t.Error("the way there changes the sum")
	}
	c.TrimEnded(9, &c.fx)
	tell("one ended", with(1, held, Command{Op: OpForce, Key: held.Key, Token: with(1, held).Stats().Highest}))
}

// Hear raises the counter, and never lowers it.
func TestHear(t *testing.T) {
	c := newCrowd(t, DefaultConfig(), 2)
	c.Hear(8*1_000_000_000 + 5)
	c.Hear(8 * 7)
	if r := c.want(Granted, Command{Op: OpAcquire, Session: client(1), Key: []byte("k")}); r.Token != 8*1_000_000_001 {
		t.Errorf("token %d", r.Token)
	}
}
