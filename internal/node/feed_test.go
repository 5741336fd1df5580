package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// told is what a feed keeps that fits a filter, a line each, oldest first.
func told(n *node.Node, f node.Filter) []string {
	all := n.Feed().Recent(f, 1000)
	slices.Reverse(all)
	return lines(all)
}

func lines(all []node.Notice) []string {
	var out []string
	for _, one := range all {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%v %s %s", one.Type, one.Key, one.Text)))
	}
	return out
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func take(s *node.Session, ref uint64, key string, change func(*locks.Command)) {
	c := locks.Command{Op: locks.OpAcquire, Ref: ref, Key: []byte(key)}
	if change != nil {
		change(&c)
	}
	s.Do([]locks.Command{c})
}

// What people must know of is told though nobody watches, whether or not a
// client is left to be told of it too; grants and releases are not.
func TestFeedTellsWhatMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)))
		n := start(t, func(c *node.Config) { c.Table.MaxKeys = 3 })
		sink := new(box)
		gone, s := n.Open(locks.Origin{Owner: "gone"}, new(box)), n.Open(locks.Origin{Owner: "ann"}, sink)
		defer s.Close()
		take(gone, 1, "left", func(c *locks.Command) { c.Lease = time.Second })
		gone.Close()
		take(s, 1, "held", nil)
		token := sink.token(t)
		take(s, 2, "held", func(c *locks.Command) { c.Wait = 2 * time.Second })
		take(s, 3, "held", func(c *locks.Command) { c.Flags = locks.Try })
		take(s, 4, "held", func(c *locks.Command) { c.Ticket = locks.Ticket{7} })
		time.Sleep(3 * time.Second)
		synctest.Wait()
		s.Do([]locks.Command{
			{Op: locks.OpRemoveWaiter, Key: []byte("held"), Ticket: locks.Ticket{7}},
			{Op: locks.OpForce, Key: []byte("held"), Token: token},
		})
		for i := range 4 {
			take(s, uint64(10+i), fmt.Sprint("many-", i), nil)
		}
		n.Note(node.Notice{Type: node.NoticeOperator, Text: "did something"})
		wantLines(t, told(n, node.Filter{Traffic: true}), "role  single node started", "expired left", "timeout held", "removed held", "forced held",
			"limit many-3 limit-keys", "operator  did something")
	})
}

// Grants are told while somebody watches a prefix of their key, to those who do.
func TestFeedTellsTrafficToWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)))
		n := start(t, nil)
		sink := new(box)
		s := n.Open(locks.Origin{Owner: "ann"}, sink)
		defer s.Close()
		take(s, 1, "a/before", nil)
		sub := subscribe(t, n, node.Filter{Prefix: "a/", Traffic: true})
		take(s, 2, "a/1", nil)
		token := sink.token(t)
		take(s, 3, "b/1", nil)
		s.Do([]locks.Command{{Op: locks.OpRelease, Key: []byte("a/1"), Token: token}})
		wantLines(t, lines(next(t, sub).Notices), "grant a/1", "release a/1")

		// So many a second are told, and the rest are counted.
		for i := range 300 {
			take(s, 9, fmt.Sprint("a/many-", i), nil)
		}
		time.Sleep(time.Second)
		take(s, 10, "a/next second", nil)
		b, rest := next(t, sub), 0
		if b.Skipped != 102 || b.GapTo != 0 { // of the 200 a second, two went before
			t.Errorf("skipped %d, gap to %d", b.Skipped, b.GapTo)
		}
		for rest = len(b.Notices); rest < 199; rest += len(next(t, sub).Notices) {
		}
		sub.Close()
		sub.Close()
		take(s, 11, "a/after", nil)
		if got := n.Feed().Recent(node.Filter{Traffic: true, Types: []node.NoticeType{node.NoticeGrant}}, 1); got[0].Key != "a/next second" {
			t.Errorf("after the last watcher the feed keeps %q", got[0].Key)
		}
	})
}

func subscribe(t *testing.T, n *node.Node, f node.Filter) *node.Subscription {
	t.Helper()
	sub, err := n.Feed().Subscribe(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	return sub
}

func next(t *testing.T, sub *node.Subscription) node.Batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b, err := sub.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A reader that is too slow finds what is left, and between which numbers some
// are missing; a storm on one shelf leaves the others alone.
func TestFeedGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, func(c *node.Config) { c.Clock = newClock() })
		n.Note(node.Notice{Type: node.NoticeOperator, Text: "first"})
		sub, operators := subscribe(t, n, node.Filter{}), subscribe(t, n, node.Filter{Types: []node.NoticeType{node.NoticeOperator}})
		for range 50 {
			for i := range 101 {
				n.Note(node.Notice{Type: node.NoticeAuth, Text: fmt.Sprint(i)})
			}
			time.Sleep(time.Second)
		}
		b := next(t, sub)
		if from, to := b.GapFrom, b.GapTo; from != 3 || to != 2+50*100-4096 {
			t.Errorf("gap from %d to %d", from, to)
		}
		if first := b.Notices[0]; first.Seq != b.GapTo+1 {
			t.Errorf("goes on at %d after %d", first.Seq, b.GapTo)
		}
		all, last := len(b.Notices), b.Notices[len(b.Notices)-1]
		for all < 4096 {
			b = next(t, sub)
			if b.GapTo != 0 || b.Notices[0].Seq != last.Seq+1 {
				t.Fatalf("gap to %d, first %d after %d", b.GapTo, b.Notices[0].Seq, last.Seq)
			}
			all, last = all+len(b.Notices), b.Notices[len(b.Notices)-1]
		}
		n.Note(node.Notice{Type: node.NoticeOperator, Text: "last"})
		if b := next(t, operators); b.GapTo != 0 || len(b.Notices) != 1 {
			t.Errorf("who reads of operators alone is told of a gap to %d, and %q", b.GapTo, lines(b.Notices))
		}
		if skipped := n.Feed().Since(last.Seq-100, 1)[0].Skipped; skipped != 1 {
			t.Errorf("the first of a second says that %d were left out, want 1", skipped)
		}
		wantLines(t, told(n, node.Filter{Types: []node.NoticeType{node.NoticeRole, node.NoticeOperator}}), "role  single node started", "operator  first", "operator  last")
	})
}

// newClock is the bubble's clock, at a time that tokens know.
func newClock() *node.Clock {
	begin := time.Now()
	return &node.Clock{Zero: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Now: func() locks.Time { return locks.Time(time.Since(begin)) }}
}

// Next ends with its context, and says why.
func TestFeedNextEnds(t *testing.T) {
	n := start(t, nil)
	sub := subscribe(t, n, node.Filter{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := sub.Next(ctx); err != why {
		t.Errorf("ended with %v", err)
	}
}

// The prefixes that every grant is held against are bounded.
func TestFeedBoundsPrefixes(t *testing.T) {
	n := start(t, nil)
	for i := range 64 {
		subscribe(t, n, node.Filter{Prefix: fmt.Sprint(i), Traffic: true})
	}
	subscribe(t, n, node.Filter{Prefix: "7", Traffic: true})
	subscribe(t, n, node.Filter{Prefix: "other"})
	if _, err := n.Feed().Subscribe(node.Filter{Prefix: "other", Traffic: true}); err == nil {
		t.Error("a 65th prefix is watched")
	}
}

func TestNoticeTypesHaveNames(t *testing.T) {
	seen := map[string]bool{"unknown": true}
	for _, one := range node.NoticeTypes() {
		if seen[one.String()] {
			t.Errorf("type %d is called %q", one, one)
		}
		seen[one.String()] = true
		if found, ok := node.NoticeTypeOf(one.String()); !ok || found != one {
			t.Errorf("%v is found as %v", one, found)
		}
	}
}
