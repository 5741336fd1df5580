package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a network of fake nodes and a client, in a bubble of fake time.
type bed struct {
	*testing.T
	net   *fakeserver.Network
	nodes []*fakeserver.Server
	c     *Client
}

// inBubble runs f with n nodes, named n1, n2, … at n1:7620, n2:7620, …, which
// share one table; n1 is the active. The bubble fails if a goroutine of the
// client is left after Close.
func inBubble(t *testing.T, n int, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, net: fakeserver.NewNetwork()}
		table := fakeserver.NewTable()
		for i := range n {
			s := fakeserver.New(fmt.Sprintf("n%d", i+1))
			s.Table = table
			if i > 0 {
				s.Role, s.Active, s.ActiveNode = wire.RoleStandby, "n1:7620", "n1"
			}
			b.nodes = append(b.nodes, s)
			b.net.Add(s.Node+":7620", s)
		}
		defer b.end()
		f(b)
	})
}

func (b *bed) end() {
	if b.c != nil {
		b.c.Close()
	}
	for _, s := range b.nodes {
		s.CutAll()
		s.Wait()
	}
}

// addrs are the addresses of all nodes.
func (b *bed) addrs() (addrs []string) {
	for _, s := range b.nodes {
		addrs = append(addrs, s.Node+":7620")
	}
	return addrs
}

// dial makes the bed's client, for all nodes, and lets it connect.
func (b *bed) dial(opts ...Option) *Client {
	b.Helper()
	b.c = b.client(b.addrs(), opts...)
	synctest.Wait()
	return b.c
}

// client makes a client that the caller closes.
func (b *bed) client(addrs []string, opts ...Option) *Client {
	b.Helper()
	c, err := New(addrs, append([]Option{WithDialer(b.net.Dial)}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// table is the one that the nodes share.
func (b *bed) table() *fakeserver.Table { return b.nodes[0].Table }

func (b *bed) acquire(key string, opts ...AcquireOption) *Lock {
	b.Helper()
	l, err := b.c.Acquire(b.Context(), key, opts...)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func (b *bed) release(l *Lock) {
	b.Helper()
	if err := l.Release(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// outcome is what an Acquire in the background came to.
type outcome struct {
	l   *Lock
	err error
	at  time.Time
}

// start runs an acquire in the background and lets it get as far as it can.
func (b *bed) start(ctx context.Context, key string, opts ...AcquireOption) chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		l, err := b.c.Acquire(ctx, key, opts...)
		ch <- outcome{l, err, time.Now()}
	}()
	synctest.Wait()
	return ch
}

// free fails unless key is free within a moment.
func (b *bed) free(keys ...string) {
	b.Helper()
	time.Sleep(200 * time.Millisecond)
	synctest.Wait()
	if busy := b.table().Busy(); len(busy) > 0 {
		b.Errorf("not free: %q, of %q", busy, keys)
	}
}

// took checks that d has passed since began, to within slack.
func (b *bed) took(began time.Time, want, slack time.Duration) {
	b.Helper()
	if d := time.Since(began); d < want || d > want+slack {
		b.Errorf("took %v, want %v to %v", d, want, want+slack)
	}
}

// is checks that err matches each of want, and nothing else of the list of all.
func (b *bed) is(err error, want ...error) {
	b.Helper()
	all := []error{ErrNotAcquired, ErrNotHeld, ErrReleased, ErrNoActive, ErrClosed, ErrUnauthorized, ErrMismatch,
		context.DeadlineExceeded, context.Canceled}
	for _, target := range all {
		expected := false
		for _, w := range want {
			expected = expected || w == target
		}
		if errors.Is(err, target) != expected {
			b.Errorf("errors.Is(%q, %q) = %v", err, target, !expected)
		}
	}
}
