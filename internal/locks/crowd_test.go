package locks_test

import (
	"fmt"
	"testing"
	"time"

	. "holdfast/internal/locks"
)

// crowd is a table with clients by number, for what a model is too slow for.
type crowd struct {
	*Table
	t   testing.TB
	fx  Effects
	now Time
}

func newCrowd(t testing.TB, cfg Config, sessions int) *crowd {
	c := &crowd{Table: New(cfg), t: t, now: Time(time.Second)}
	c.Activate(c.now, 0, &c.fx)
	for i := range sessions {
		c.do(Command{Op: OpAttach, Session: client(i), Origin: &Origin{Owner: "crowd"}})
	}
	return c
}

// client is the session of the i-th client.
func client(i int) Session { return Session(1<<32 | uint64(i)) }

// ticket is the n-th ticket.
func ticket(n int) Ticket { return Ticket{byte(n >> 16), byte(n >> 8), byte(n), 15: 1} }

// do runs a command and returns what it brought about, good until the next.
func (c *crowd) do(cmd Command) []Reply {
	c.fx.Reset()
	c.Do(c.now, &cmd, &c.fx)
	return c.fx.Replies
}

// want runs a command and checks the code of its first reply.
func (c *crowd) want(code Code, cmd Command) Reply {
	c.t.Helper()
	replies := c.do(cmd)
	if len(replies) == 0 || replies[0].Code != code {
		c.t.Fatalf("%s: %+v, not %s", cmd.Op, replies, code)
	}
	return replies[0]
}

func (c *crowd) check() {
	c.t.Helper()
	if err := c.Check(); err != nil {
		c.t.Fatal(err)
	}
}

// A client that goes with thousands of claims is taken out in pieces, and what
// others ask for in between is decided as if it had gone at once.
func TestDetachInPieces(t *testing.T) {
	const x, gone, y, z = 1, 2, 3, 4
	c := newCrowd(t, DefaultConfig(), 5)
	k := []byte("jobs")
	held := c.want(Granted, Command{Op: OpAcquire, Session: client(x), Key: k})
	for i := range 3000 {
		c.want(Queued, Command{Op: OpAcquire, Session: client(gone), Key: k, Ref: uint64(i)})
	}
	c.want(Queued, Command{Op: OpAcquire, Session: client(y), Key: k})
	for i := range 3000 {
		bound := fmt.Appendf(nil, "bound/%d", i)
		c.want(Granted, Command{Op: OpAcquire, Session: client(gone), Key: bound, Flags: Bound, Lease: time.Hour})
		if i%3 == 0 {
			c.want(Queued, Command{Op: OpAcquire, Session: client(gone), Key: k, Ticket: ticket(i)})
			c.want(Queued, Command{Op: OpAcquire, Session: client(z), Key: bound})
		}
	}
	leave := Command{Op: OpDetach, Session: client(gone)}
	c.do(leave)
	c.check()
	if !c.fx.More {
		t.Fatal("7,000 claims went in one piece")
	}
	if waiters := c.Stats().Waiters; waiters < 4000 {
		t.Fatalf("the first piece left %d waiters", waiters)
	}

	// C-07: y does not wait for any of those who are gone.
	if r := c.do(Command{Op: OpRelease, Session: client(x), Key: k, Token: held.Token}); len(r) != 2 ||
		r[1].Code != Granted || r[1].To != client(y) {
		t.Fatalf("release: %+v", r)
	}
	pieces := 1
	for more := true; more; pieces++ {
		if replies := c.do(leave); len(replies) != 0 {
			t.Fatalf("somebody is told: %+v", replies)
		}
		more = c.fx.More
		c.check()
	}
	if pieces < 8 {
		t.Errorf("only %d pieces for 4,000 claims", pieces)
	}
	if s := c.Stats(); s.Waiters != 2000 || s.Held != 3001 {
		t.Errorf("%+v: not the 1,000 attempts with a ticket, the 1,000 of z, the bound grants and y's", s)
	}

	// After the grace all that was bound goes to those who wait, the rest is gone.
	c.now = c.now.Add(DefaultConfig().ReattachGrace)
	c.fx.Reset()
	c.Advance(c.now, 0, &c.fx)
	c.check()
	granted := 0
	for i := range c.fx.Replies {
		if r := &c.fx.Replies[i]; r.To != client(z) || r.Code != Granted {
			t.Fatalf("%+v", r)
		}
		granted++
	}
	if s := c.Stats(); granted != 1000 || s.Waiters != 0 || s.Held != 1001 {
		t.Errorf("%d granted, %+v", granted, s)
	}
}

// A key has room for 65,535 shared holders. One more is refused, and where it
// waits already it goes on waiting.
func TestHolderLimit(t *testing.T) {
	cfg := DefaultConfig()
	c := newCrowd(t, cfg, 4)
	k := []byte("doc")
	share := Command{Op: OpAcquire, Session: client(1), Key: k, Flags: Shared}
	var last Reply
	for range MaxHolders {
		last = c.want(Granted, share)
	}
	c.want(LimitHolders, share)
	share.Flags |= Try
	c.want(LimitHolders, share)
	share.Flags &^= Try
	c.want(Queued, Command{Op: OpAcquire, Session: client(2), Key: k, Ref: 1})
	c.want(Queued, share)
	c.check()

	// The one ahead leaves: there is room for nobody, until someone releases.
	c.want(Cancelled, Command{Op: OpCancel, Session: client(2), Ref: 1})
	if s := c.Stats(); s.Held != MaxHolders || s.Waiters != 1 {
		t.Fatalf("%+v", s)
	}
	if r := c.do(Command{Op: OpRelease, Session: client(3), Key: k, Token: last.Token}); len(r) != 2 || r[1].Code != Granted {
		t.Fatalf("release: %+v", r)
	}
	if v := c.View(c.now, k, 3, 3); v.HoldersTotal != MaxHolders || v.Mode != ModeShared {
		t.Errorf("%d holders, %s", v.HoldersTotal, v.Mode)
	}
	c.check()
	c.now = c.now.Add(cfg.DefaultLease)
	c.fx.Reset()
	c.Advance(c.now, 0, &c.fx)
	if s := c.Stats(); s.Keys != 0 || len(c.fx.Replies) != MaxHolders {
		t.Errorf("after the leases %+v, %d told", s, len(c.fx.Replies))
	}
}

// C-21 and C-22: 70,000 wait for one key. A release is answered and grants, and
// that is all; after 200,000 of them every count is exact, and at the end zero.
func TestManyWaiters(t *testing.T) {
	const clients, rounds = 70_000, 200_000
	c := newCrowd(t, DefaultConfig(), clients+1)
	k := []byte("jobs")
	token := c.want(Granted, Command{Op: OpAcquire, Session: client(0), Key: k}).Token
	for i := range clients {
		if p := c.want(Queued, Command{Op: OpAcquire, Session: client(i + 1), Key: k}).Position; p != uint32(i+1) {
			t.Fatalf("position %d of the %d-th", p, i+1)
		}
	}
	release := func(round int, of, next Session) {
		r := c.do(Command{Op: OpRelease, Session: of, Key: k, Token: token})
		if len(r) != 2 || r[0].Code != Released || r[1].To != next || r[1].Code != Granted || r[1].Token <= token {
			t.Fatalf("round %d: %+v", round, r)
		}
		token = r[1].Token
	}
	for i := range rounds {
		holder := client(i % (clients + 1))
		release(i, holder, client((i+1)%(clients+1)))
		if p := c.want(Queued, Command{Op: OpAcquire, Session: holder, Key: k}).Position; p != clients {
			t.Fatalf("round %d: position %d", i, p)
		}
	}
	if s := c.Stats(); s != (Stats{Keys: 1, Held: 1, Waiters: clients, KeyBytes: 4, Highest: token}) {
		t.Errorf("%+v", s)
	}
	c.check()
	for i := rounds; i < rounds+clients; i++ {
		release(i, client(i%(clients+1)), client((i+1)%(clients+1)))
		if s, v := c.Stats(), c.View(c.now, k, 0, 0); s.Waiters != rounds+clients-1-i || v.WaitersTotal != s.Waiters {
			t.Fatalf("round %d: %d waiters, the key has %d", i, s.Waiters, v.WaitersTotal)
		}
	}
	c.want(Released, Command{Op: OpRelease, Session: client(0), Key: k, Token: token})
	if s := c.Stats(); s != (Stats{Highest: token}) {
		t.Errorf("at the end %+v", s)
	}
	c.check()
}
