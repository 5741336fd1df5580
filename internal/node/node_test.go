package node_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a sink that keeps what it is told.
type box struct {
	mu      sync.Mutex
	replies []locks.Reply
	flushes int
}

func (b *box) Push(r *locks.Reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := *r
	own.Key = append([]byte(nil), r.Key...)
	b.replies = append(b.replies, own)
}

func (b *box) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushes++
}

// take returns what came since the last take, a line each.
func (b *box) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for _, r := range b.replies {
		lines = append(lines, fmt.Sprintf("%d %s %s", r.Ref, r.Code, r.Key))
	}
	b.replies = nil
	return lines
}

func (b *box) token(t *testing.T) locks.Token {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.replies) == 0 || b.replies[len(b.replies)-1].Code != locks.Granted {
		t.Fatalf("no grant at the end of %v", b.replies)
	}
	return b.replies[len(b.replies)-1].Token
}

func want(t *testing.T, b *box, lines ...string) {
	t.Helper()
	if got := b.take(); fmt.Sprint(got) != fmt.Sprint(lines) {
		t.Errorf("got replies %q, want %q", got, lines)
	}
}

func start(t *testing.T, change func(*node.Config)) *node.Node {
	t.Helper()
	cfg := node.Config{Name: "n1", Table: locks.DefaultConfig()}
	if change != nil {
		change(&cfg)
	}
	n, err := node.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return n
}

// inBubble runs f with the fake clock of synctest, at a time that has tokens.
func inBubble(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)))
		f(t)
	})
}

func acquire(key string, ref uint64, lease time.Duration) locks.Command {
	return locks.Command{Op: locks.OpAcquire, Ref: ref, Key: []byte(key), Lease: lease}
}

func TestTimerHandsOnAtTheLeaseEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := start(t, nil)
		var x, y box
		sx, sy := n.Open(locks.Origin{Owner: "x"}, &x), n.Open(locks.Origin{Owner: "y"}, &y)
		defer sx.Close()
		defer sy.Close()
		sx.Do([]locks.Command{acquire("k", 1, 10*time.Second)})
		want(t, &x, "1 granted k")
		sy.Do([]locks.Command{acquire("k", 2, 10*time.Second)})
		want(t, &y, "2 queued k")
		time.Sleep(10*time.Second - time.Nanosecond)
		synctest.Wait()
		want(t, &y)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		want(t, &x, "0 lost k")
		want(t, &y, "2 granted k")
		if x.flushes != 1 || y.flushes != 1 {
			t.Errorf("flushed %d and %d times, want once each", x.flushes, y.flushes)
		}
	})
}

func TestTimerNoticesAnEarlierDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := start(t, nil)
		var x box
		s := n.Open(locks.Origin{}, &x)
		defer s.Close()
		s.Do([]locks.Command{acquire("long", 1, time.Hour)})
		synctest.Wait()
		s.Do([]locks.Command{acquire("short", 2, time.Second)})
		x.take()
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, &x, "0 lost short")
	})
}

func TestBatchFlushesOthersOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := start(t, nil)
		var x, y box
		sx, sy := n.Open(locks.Origin{}, &x), n.Open(locks.Origin{}, &y)
		defer sx.Close()
		defer sy.Close()
		sx.Do([]locks.Command{acquire("a", 1, 0)})
		a := x.token(t)
		sx.Do([]locks.Command{acquire("b", 2, 0)})
		b := x.token(t)
		x.take()
		sy.Do([]locks.Command{acquire("a", 3, 0), acquire("b", 4, 0)})
		y.take()
		sx.Do([]locks.Command{
			{Op: locks.OpRelease, Ref: 5, Key: []byte("a"), Token: a},
			{Op: locks.OpRelease, Ref: 6, Key: []byte("b"), Token: b},
		})
		want(t, &x, "5 released a", "6 released b")
		want(t, &y, "3 granted a", "4 granted b")
		if x.flushes != 0 || y.flushes != 1 {
			t.Errorf("flushed %d and %d times, want its own sink never and the other once", x.flushes, y.flushes)
		}
	})
}

func TestCloseTellsNobodyAndLetsTheNextIn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := start(t, nil)
		var x, y, z box
		sx, sy, sz := n.Open(locks.Origin{}, &x), n.Open(locks.Origin{}, &y), n.Open(locks.Origin{}, &z)
		defer sx.Close()
		defer sz.Close()
		sx.Do([]locks.Command{acquire("k", 1, time.Second)})
		for ref := range uint64(2000) { // more than one piece
			sy.Do([]locks.Command{acquire("k", ref+1, 0)})
		}
		sz.Do([]locks.Command{acquire("k", 9, 0)})
		x.take()
		y.take()
		z.take()
		sy.Close()
		if st := n.Status().Stats; st.Waiters != 1 {
			t.Errorf("%d waiters after the close, want 1", st.Waiters)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, &y)
		want(t, &z, "9 granted k")
	})
}

func TestUndeliveredAfterCloseGoesToTheNext(t *testing.T) {
	for _, flags := range []locks.Flags{0, locks.Bound} {
		inBubble(t, func(t *testing.T) {
			n := start(t, nil)
			var x, y box
			sx, sy := n.Open(locks.Origin{}, &x), n.Open(locks.Origin{}, &y)
			defer sy.Close()
			c := acquire("k", 1, time.Hour)
			c.Flags = flags
			sx.Do([]locks.Command{c})
			token := x.token(t)
			sy.Do([]locks.Command{acquire("k", 2, time.Hour)})
			y.take()
			sx.Close()
			sx.Undelivered([]byte("k"), token)
			want(t, &y, "2 granted k")
		})
	}
}

func TestSessionNumbersNeverComeBack(t *testing.T) {
	n := start(t, func(c *node.Config) { c.Table.Rank = 5 })
	seen := map[locks.Session]bool{}
	for range 1000 {
		s := n.Open(locks.Origin{}, &box{})
		if seen[s.ID()] || s.ID()>>61 != 5 {
			t.Fatalf("session %#x: seen before, or not of rank 5", s.ID())
		}
		seen[s.ID()] = true
		s.Close()
	}
	if st := n.Status(); st.Sessions != 0 {
		t.Errorf("%d sessions are left", st.Sessions)
	}
}

func TestTokensStartAboveTheMark(t *testing.T) {
	mark := locks.Token(1) << 52
	n := start(t, func(c *node.Config) { c.Mark = mark })
	var x box
	s := n.Open(locks.Origin{}, &x)
	defer s.Close()
	s.Do([]locks.Command{acquire("k", 1, 0)})
	epoch := n.Status().Epoch
	if token := x.token(t); epoch <= mark || token <= epoch {
		t.Errorf("mark %d, epoch %d, first token %d: they do not go up", mark, epoch, token)
	}
	if ahead := n.MarkAhead(time.Second); ahead <= x.token(t)+8*1_000_000 {
		t.Errorf("the mark for a second ahead is %d, the last token %d", ahead, x.token(t))
	}
}

func TestRowsOfALargeTableAreSharedForASecond(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := start(t, nil)
		var x box
		s := n.Open(locks.Origin{}, &x)
		defer s.Close()
		var batch []locks.Command
		for i := range 10_001 {
			batch = append(batch, acquire(fmt.Sprintf("key-%05d", i), 1, time.Hour))
		}
		s.Do(batch[:3])
		if got := len(n.Rows().Rows); got != 3 {
			t.Fatalf("%d rows of 3", got)
		}
		s.Do(batch[3:])
		first := n.Rows()
		seen := map[string]bool{}
		for _, r := range first.Rows {
			seen[r.Key] = true
		}
		if len(seen) != len(batch) || len(first.Rows) != len(batch) {
			t.Fatalf("%d rows, %d keys, want %d", len(first.Rows), len(seen), len(batch))
		}
		if n.Rows() != first {
			t.Error("a second look within the second copied the table again")
		}
		time.Sleep(time.Second)
		if n.Rows() == first {
			t.Error("the snapshot is older than a second")
		}
	})
}

// TestManySessionsAtOnce hammers one node from many goroutines and checks the
// promise that matters: never two holders, tokens only rising per key.
func TestManySessionsAtOnce(t *testing.T) {
	n := start(t, nil)
	const clients, rounds, keys = 16, 300, 3
	var mu sync.Mutex
	holders, last := map[string]int{}, map[string]locks.Token{}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			got := make(chan locks.Reply, 4)
			s := n.Open(locks.Origin{}, sinkFunc(func(r *locks.Reply) {
				if r.Code != locks.Queued {
					got <- *r
				}
			}))
			defer s.Close()
			for j := range rounds {
				key := fmt.Sprint("key", (i+j)%keys)
				s.Do([]locks.Command{acquire(key, 1, time.Minute)})
				r := <-got
				mu.Lock()
				holders[key]++
				if holders[key] != 1 || r.Token <= last[key] {
					t.Errorf("%s: %d holders, token %d after %d", key, holders[key], r.Token, last[key])
				}
				last[key] = r.Token
				holders[key]--
				mu.Unlock()
				s.Do([]locks.Command{{Op: locks.OpRelease, Ref: 2, Key: []byte(key), Token: r.Token}})
				if r := <-got; r.Code != locks.Released {
					t.Errorf("release of %s: %v", key, r.Code)
				}
			}
		})
	}
	wg.Wait()
	if st := n.Status().Stats; st.Keys != 0 || st.Held != 0 || st.Waiters != 0 {
		t.Errorf("left over: %+v", st)
	}
}

type sinkFunc func(*locks.Reply)

func (f sinkFunc) Push(r *locks.Reply) { f(r) }
func (f sinkFunc) Flush()              {}

func TestClockOutsideTheTokenYearsRefusesTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble starts in the year 2000
		_, err := node.New(node.Config{Table: locks.DefaultConfig()})
		if err == nil {
			t.Fatal("a clock in the year 2000 was accepted")
		}
		t.Log(err)
	})
}
