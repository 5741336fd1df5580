package native

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/wire"
)

// Every code of the table has a row, and what each becomes is in a golden file:
// a change of a mapping is seen.
func TestEveryCode(t *testing.T) {
	m := newMessages(24*time.Hour, 65_536)
	var got strings.Builder
	for _, code := range locks.Codes() {
		if int(code) >= len(shapes) {
			t.Errorf("%v has no row in shapes", code)
			continue
		}
		r := locks.Reply{Code: code, Op: locks.OpAcquire, Key: []byte("k"), Token: 8, Slots: 3, Waiters: 2, Lease: time.Second}
		if shapes[code].shape == push {
			r.Op, r.Reason = 0, locks.ByExpiry
		}
		if shapes[code].shape == refusal && len(m[code]) == 0 && code != locks.Mismatch {
			t.Errorf("%v has no message", code)
		}
		var frame wire.Reply
		if !m.frame(&r, &frame) {
			fmt.Fprintf(&got, "%v: not told\n", code)
			continue
		}
		fmt.Fprintf(&got, "%v: %c %s %s\n", code, frame.Op, status(frame.Status), fields(&frame))
	}
	const file = "testdata/codes.golden"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Error(firstDifference(got.String(), string(want)))
	}
}

func status(s wire.Status) string {
	if s == wire.StatusPush {
		return "push"
	}
	return string(rune(s))
}

func fields(r *wire.Reply) string {
	if r.Status == wire.StatusError {
		return fmt.Sprintf("%d %s", r.Code, r.Message)
	}
	return fmt.Sprintf("token=%d lease=%d waiters=%d", r.Token, r.LeaseMS, r.Waiters)
}

// The flags are handed on without a table.
func TestFlags(t *testing.T) {
	for w, l := range map[wire.Flags]locks.Flags{
		wire.FlagTry: locks.Try, wire.FlagRetry: locks.Retry, wire.FlagShared: locks.Shared,
		wire.FlagBound: locks.Bound, wire.FlagContended: locks.Contended,
	} {
		if locks.Flags(w) != l {
			t.Errorf("wire flag %v is %d for the table, %d here", w, l, w)
		}
	}
}

// A client hears of the three reasons of the protocol, and of no other.
func TestLostReasons(t *testing.T) {
	m := newMessages(time.Hour, 1)
	told := map[locks.Reason]wire.Reason{
		locks.ByExpiry: wire.ReasonExpired, locks.ByForce: wire.ReasonForced, locks.BySupersede: wire.ReasonSuperseded,
	}
	for reason := range locks.Reason(32) {
		var frame wire.Reply
		ok := m.frame(&locks.Reply{Code: locks.Lost, Reason: reason}, &frame)
		if letter, want := told[reason]; ok != want || frame.Reason != letter {
			t.Errorf("%v: told %v with %q, want %v with %q", reason, ok, frame.Reason, want, letter)
		}
	}
}

func TestMillisRoundsDown(t *testing.T) {
	for d, want := range map[time.Duration]uint32{
		-time.Second: 0, 0: 0, time.Millisecond - 1: 0, 1999 * time.Microsecond: 1, 24 * time.Hour: 86_400_000,
		100 * 24 * time.Hour: 1<<32 - 1,
	} {
		if got := millis(d); got != want {
			t.Errorf("millis(%v) = %d, want %d", d, got, want)
		}
	}
}

// Every way to end has a name of its own.
func TestEndings(t *testing.T) {
	seen := map[string]bool{}
	for e := range numEndings {
		if name := e.String(); name == "" || seen[name] {
			t.Errorf("ending %d is called %q", e, name)
		}
		seen[e.String()] = true
	}
}

// What a node says of itself: one that stops is the active while it is.
func TestWelcomeRole(t *testing.T) {
	for _, c := range []struct {
		role         node.Role
		name, active string
		want         wire.Role
	}{
		{node.Active, "n1", "n1", wire.RoleActive},
		{node.Stopping, "n1", "n1", wire.RoleActive},
		{node.Standby, "n2", "n1", wire.RoleStandby},
		{node.Standby, "n2", "", wire.RoleStandby},
		{node.Stopping, "n2", "n1", wire.RoleStandby},
		{node.Joining, "n3", "n1", wire.RoleJoining},
		{node.Joining, "n3", "", wire.RoleJoining},
	} {
		st := node.Status{Role: c.role, Name: c.name, DefaultLease: time.Second, MaxLease: time.Minute}
		r := welcome(&st, node.ActiveNode{Name: c.active, Native: "10.0.0.1:7620", Here: c.name == c.active}, "holdfastd/1", 7)
		if r.Role != c.want || r.ID != 7 || string(r.Node) != c.name || string(r.ActiveNode) != c.active || string(r.Addr) != "10.0.0.1:7620" {
			t.Errorf("%+v: %v", c, r)
		}
	}
}
