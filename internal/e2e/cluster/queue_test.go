//go:build linux

package cluster

import (
	"crypto/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/wire"
)

// queue is waiters on one key, each with a ticket, spread over some connections. Their order in line is known: the
// connections take turns, and none goes on before what the one before it has sent was read.
type queue struct {
	key     string
	tickets []wire.Ticket
	conns   []*conn

	mu     sync.Mutex // guards what follows
	tokens []uint64   // by waiter; 0 = not granted yet
	left   int
	bad    []wire.Reply // answers that nobody wants
	served chan struct{}
}

// waiting is more than a client would ever pipeline, on a key that 100 may hold: its queue drains with more than one
// round trip under way.
const (
	waiting   = 100_000
	lines     = 4
	oneBlock  = 5_000
	slotsOf   = 100
	firstID   = 1 << 20 // ids of waiters are above those of other requests
	queueName = "crowded"
)

func newQueue() *queue {
	q := &queue{key: queueName, tickets: make([]wire.Ticket, waiting), tokens: make([]uint64, waiting), left: waiting, served: make(chan struct{})}
	for i := range q.tickets {
		rand.Read(q.tickets[i][:])
	}
	return q
}

// connect opens the connections to a node.
func (q *queue) connect(n *node) {
	n.t.Helper()
	q.conns = nil
	for range lines {
		var c *conn
		c, err := n.set.open(n.native(), patience, func(r wire.Reply) { q.answered(c, r) })
		if err != nil {
			n.t.Fatalf("connect to %s: %v", n.name, err)
		}
		n.t.Cleanup(c.close)
		q.conns = append(q.conns, c)
	}
}

// ask sends every acquire, block by block over the connections in turn.
func (q *queue) ask(n *node, flags wire.Flags) {
	n.t.Helper()
	var out []byte
	for first := 0; first < waiting; first += oneBlock {
		c := q.conns[first/oneBlock%lines]
		out = out[:0]
		for i := first; i < first+oneBlock; i++ {
			r := acquire(q.key, longHold)
			r.ID, r.Slots, r.Ticket, r.Flags = firstID+uint32(i), slotsOf, q.tickets[i], flags
			out = wire.AppendRequest(out, &r)
		}
		if err := c.write(out); err != nil {
			n.t.Fatal(err)
		}
		n.done(c, wire.Request{Op: wire.OpPing}, wire.StatusPong)
	}
}

// answered notes a grant and gives it back at once.
func (q *queue) answered(c *conn, r wire.Reply) {
	if r.Op == wire.OpRelease && r.Status == wire.StatusReleased {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := int(r.ID) - firstID
	if r.Op != wire.OpAcquire || r.Status != wire.StatusGranted || i < 0 || i >= waiting || q.tokens[i] != 0 {
		if r.Status != wire.StatusMoved {
			q.bad = append(q.bad, r)
		}
		return
	}
	q.tokens[i] = r.Token
	free := release(q.key, r.Token)
	free.ID = r.ID
	_ = c.write(wire.AppendRequest(nil, &free)) // where it fails, the queue stands still and the test says so
	if q.left--; q.left == 0 {
		close(q.served)
	}
}

// A hundred thousand wait for one key when the active dies. All of them keep their places.
func TestLongQueueSurvivesAFailover(t *testing.T) {
	s := startSet(t, 3)
	one, two := s.nodes[0], s.nodes[1]
	var holders []wire.Request // what ends the holds that everybody waits for
	c := one.must()
	for range slotsOf {
		r := try(queueName, longHold)
		r.Slots = slotsOf
		holders = append(holders, release(queueName, one.done(c, r, wire.StatusGranted).Token))
	}
	q := newQueue()
	q.connect(one)
	q.ask(one, 0)
	if is := one.state(); is.Waiters != waiting {
		t.Fatalf("%d wait, want %d", is.Waiters, waiting)
	}
	s.level(one)
	began := time.Now()
	one.kill()
	two.awaitRole("active")
	q.connect(two)
	q.ask(two, wire.FlagRetry)
	t.Logf("everybody has asked the new active within %v", time.Since(began))
	if is := two.state(); is.Waiters != waiting {
		t.Errorf("%d wait after the failover, want %d", is.Waiters, waiting)
	}
	c = two.must()
	for _, r := range holders {
		two.done(c, r, wire.StatusReleased)
	}
	select {
	case <-q.served:
	case <-time.After(2 * patience):
		q.mu.Lock()
		t.Errorf("%d were never served", q.left)
		q.mu.Unlock()
	}
	t.Logf("all were served within %v", time.Since(began))
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.bad) > 0 {
		t.Errorf("%d answers that nobody wants, the first %c %c %s", len(q.bad), q.bad[0].Op, q.bad[0].Status, q.bad[0].Message)
	}
	if !slices.IsSorted(q.tokens) {
		for i := 1; i < waiting; i++ {
			if q.tokens[i] < q.tokens[i-1] {
				t.Fatalf("waiter %d has token %d, the one before it %d", i, q.tokens[i], q.tokens[i-1])
			}
		}
	}
}
