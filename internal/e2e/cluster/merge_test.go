//go:build linux

package cluster

import (
	"fmt"
	"testing"
	"time"

	"holdfast/wire"
)

// healing is how soon after the network's return there must be one active, and what a busy machine may add.
const (
	healing      = time.Second
	healingSlack = 2 * time.Second
)

// sides is what clients hold on both sides of a partition.
type sides struct {
	a, b             *node // both active
	connA, connB     *conn
	lost             chan wire.Reply   // pushes to the client at a
	alone, disputed  map[string]uint64 // tokens by key, of locks on one side only, and of a's of the others
	disputedAtOthers map[string]uint64 // b's tokens of those
}

const perSide = 20

// serveBoth takes locks on both sides: some keys on one of them, and others on both.
func serveBoth(t *testing.T, a, b *node) *sides {
	t.Helper()
	s := &sides{a: a, b: b, lost: make(chan wire.Reply, 10*perSide), alone: map[string]uint64{}, disputed: map[string]uint64{}, disputedAtOthers: map[string]uint64{}}
	var err error
	if s.connA, err = a.set.open(a.native(), patience, func(r wire.Reply) { s.lost <- r }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.connA.close)
	s.connB = b.must()
	take := func(n *node, c *conn, key string) uint64 {
		return n.done(c, try(key, longHold), wire.StatusGranted).Token
	}
	for i := range perSide {
		for _, side := range []struct {
			n *node
			c *conn
		}{{a, s.connA}, {b, s.connB}} {
			key := fmt.Sprintf("alone/%s/%d", side.n.name, i)
			s.alone[key] = take(side.n, side.c, key)
		}
		key := fmt.Sprintf("disputed/%d", i)
		s.disputed[key] = take(a, s.connA, key)
		s.disputedAtOthers[key] = take(b, s.connB, key)
		if s.disputed[key] == s.disputedAtOthers[key] {
			t.Errorf("token %d was issued twice", s.disputed[key])
		}
	}
	return s
}

// merged checks what the one active makes of both sides: all that is not disputed stands, and of the rest the higher
// tokens; a holder of a lower one at the node that went on serving was told.
func (s *sides) merged(t *testing.T, active *node) {
	t.Helper()
	c := active.must()
	for key, token := range s.alone {
		active.done(c, extend(key, token, longHold), wire.StatusExtended)
	}
	superseded := map[uint64]bool{}
	for key, token := range s.disputed {
		low, high := token, s.disputedAtOthers[key]
		if low > high {
			low, high = high, low
		}
		active.done(c, extend(key, high, longHold), wire.StatusExtended)
		active.done(c, extend(key, low, longHold), wire.StatusNone)
		if low == token {
			superseded[token] = true
		}
	}
	if s.a != active {
		return
	}
	late := time.After(patience)
	for len(superseded) > 0 {
		select {
		case r := <-s.lost:
			if r.Op != wire.OpLost || r.Reason != wire.ReasonSuperseded || !superseded[r.Token] {
				t.Errorf("pushed %c %c for token %d, want L S for one of %v", r.Op, r.Reason, r.Token, superseded)
			}
			delete(superseded, r.Token)
		case <-late:
			t.Fatalf("these holders were never told that they are superseded: %v", superseded)
		}
	}
}

// partition cuts, lets both sides serve, heals, and checks what comes of it.
func partition(t *testing.T, cut func(w *network)) {
	w := newNetwork(t, 3)
	w.start()
	one, two := w.nodes[0], w.nodes[1]
	l := startLoad(t, w.set, shortLease)
	from := l.now()
	cut(w)
	two.awaitRole("active")
	s := serveBoth(t, one, two)
	l.more(t, 100)
	mark := two.life.mark()
	healed := time.Now()
	w.heal()
	down := two.life.awaitLine(t, "its stepping down", mark, isRole)
	w.settled(one)
	l.declare(fault{split, from - instant(time.Second), l.now()})
	if took := down.at.Sub(healed); took > healing+healingSlack || down.Role == "active" {
		t.Errorf("%v after the network's return n2 became %s (%s), want one active within %v", took, down.Role, down.Reason, healing)
	} else {
		t.Logf("one active %v after the network's return", took)
	}
	s.merged(t, one)
	l.finish()
}

// C-58, C-61: the active is cut off from the others, both ways.
func TestPartition(t *testing.T) {
	partition(t, func(w *network) {
		w.deafen(0, 1, 2)
		w.deafen(1, 0)
		w.deafen(2, 0)
	})
}

// Nothing of what the active says arrives, while it hears the others.
func TestPartitionOneWay(t *testing.T) {
	partition(t, func(w *network) {
		w.deafen(1, 0)
		w.deafen(2, 0)
	})
}
