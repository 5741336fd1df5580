package replica

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// checker watches a world and keeps what its invariants need to know. The
// first one that does not hold is the verdict.
type checker struct {
	w     *world
	fault string

	tokens   map[Token]int // by whom it was taken
	highest  map[int]Token // the highest that a node took or heard, over its restarts
	states   map[Position]string
	grants   map[Token]Position // answered or about to be
	answered map[Token]bool
	ends     map[Token][]Position
	released map[Token]bool // and its holder was told
	answers  map[uint64]int
	asked    map[uint64]asker
	frozen   map[int]time.Duration
	lossAt   time.Duration // of the last promotion after a loss
	noLoss   bool          // nothing that was answered may be lost
}

func newChecker(w *world) *checker {
	c := &checker{
		w: w, tokens: map[Token]int{}, highest: map[int]Token{}, states: map[Position]string{},
		grants: map[Token]Position{}, answered: map[Token]bool{}, ends: map[Token][]Position{}, released: map[Token]bool{},
		answers: map[uint64]int{}, asked: map[uint64]asker{}, frozen: map[int]time.Duration{},
	}
	w.check = c
	return c
}

func (c *checker) fail(format string, args ...any) {
	if c.fault == "" {
		c.fault = fmt.Sprintf("at %v: ", c.w.now) + fmt.Sprintf(format, args...)
		c.w.log("FAULT %s", c.fault)
	}
}

// Invariant 1.

func (c *checker) token(n *node, t Token) {
	if by, ok := c.tokens[t]; ok {
		c.fail("token %d was taken by n%d and again by n%d", t, by, n.rank)
	}
	c.tokens[t] = n.rank
	if t <= c.highest[n.rank] && !c.forgotten() {
		c.fail("n%d took token %d after it took or heard of %d", n.rank, t, c.highest[n.rank])
	}
	c.heard(n, t)
}

// forgotten is the one case in which tokens may go back: every node restarted,
// without a disk, within half a second of a promotion.
func (c *checker) forgotten() bool {
	for _, n := range c.w.nodes {
		if n.up && n.bootAt < c.lossAt {
			return false
		}
	}
	return !c.w.disk && c.w.now-c.lossAt < time.Second
}

func (c *checker) heard(n *node, t Token) { c.highest[n.rank] = max(c.highest[n.rank], t) }

func (c *checker) epoch(n *node, e Token) {
	if e>>3 <= n.m.highest>>3 && c.w.broken == honest {
		c.fail("n%d began reign %d, but has heard of token %d", n.rank, e, n.m.highest)
	}
}

// step looks at a node after each of its inputs.
func (c *checker) step(n *node) {
	m := n.m
	if m.reigning != 0 {
		c.fail("n%d: an activation was left unanswered", n.rank)
	}
	// The dear comparison comes when the position has changed, and now and then.
	if n.checks++; m.whole && !m.pos.IsZero() && (n.checked != m.pos || n.checks%32 == 0) {
		n.checked = m.pos
		c.prefix(n)
	}
	if c.noLoss && m.role == Active && n.reigned != m.pos.Epoch {
		n.reigned = m.pos.Epoch
		c.inherits(n)
	}
	c.bound(n)
	if m.role == Active && n.frozen != (m.frozen != 0) {
		c.fail("n%d: the owner and the machine differ about frozen", n.rank)
	}
}

// prefix: at one position there is one state, so a standby equals a prefix of
// its active, and a hand-off loses nothing.
func (c *checker) prefix(n *node) {
	state := n.state.String()
	if was, ok := c.states[n.m.pos]; !ok {
		c.states[n.m.pos] = state
		c.promises(n)
	} else if was != state {
		c.fail("n%d has at %s\n  %s\nanother node had\n  %s", n.rank, n.m.pos, state, was)
	}
}

// promises are invariants 4 and 7, by lineage: a state that descends from the
// event that granted a token has it, or descends from an event that ended it;
// and one that descends from such an event has it no more.
func (c *checker) promises(n *node) {
	if n.m.role == Active {
		for k, g := range n.state.held {
			if at, ok := c.endedIn(n, g.token); ok && c.released[g.token] {
				c.fail("n%d grants %s to %s with token %d again, which its holder released at %s", n.rank, k, g.ticket, g.token, at)
			}
		}
	}
}

// inherits: where nothing may be lost, a reign begins with all that was answered.
func (c *checker) inherits(n *node) {
	for _, t := range slices.Sorted(maps.Keys(c.answered)) {
		if at := c.grants[t]; !n.m.lineage.covers(n.m.pos, at) {
			c.fail("n%d begins reign %d without token %d, which was granted at %s and answered", n.rank, n.m.pos.Epoch, t, at)
		}
	}
}

func (c *checker) endedIn(n *node, t Token) (Position, bool) {
	for _, at := range c.ends[t] {
		if n.m.lineage.covers(n.m.pos, at) {
			return at, true
		}
	}
	return Position{}, false
}

// final checks every answered grant against the state that is left.
func (c *checker) final(n *node) {
	for t, at := range c.grants {
		if !c.answered[t] {
			continue
		}
		if n.state.keyOf(t) != "" {
			continue
		}
		covered := n.m.lineage.covers(n.m.pos, at)
		if _, ended := c.endedIn(n, t); !ended && (covered || c.noLoss) {
			c.fail("token %d was granted at %s and is gone from n%d at %s, though nobody ended it", t, at, n.rank, n.m.pos)
		}
	}
	if !c.noLoss {
		return
	}
	for t := range c.released {
		if _, ended := c.endedIn(n, t); !ended || n.state.keyOf(t) != "" {
			c.fail("token %d was released, and n%d at %s does not know", t, n.rank, n.m.pos)
		}
	}
}

// grant: a node that was paused for long enough to notice grants nothing once another became active
// meanwhile that it can reach, and was linked with, unless the offer of its
// state broke off.
func (c *checker) grant(n *node, t Token) {
	c.grants[t] = n.m.pos
	back := n.bootAt + time.Duration(n.resumed)
	for _, o := range c.w.nodes {
		if o == n || !o.up || o.paused || o.m.role != Active || n.pausedAt == 0 || n.reignAt >= back || o.reignAt <= n.pausedAt || o.reignAt >= back || back-n.pausedAt <= n.m.pauseBound()+tick || !n.linked.has(Rank(o.rank)) ||
			c.w.cutOff(o.rank, n.rank) || c.w.cutOff(n.rank, o.rank) || n.time().Sub(n.resumed) > 500*time.Millisecond {
			continue
		}
		if o.m.pos.Epoch > n.m.pos.Epoch {
			c.fail("n%d, back from a pause, grants token %d beside n%d, which became active meanwhile", n.rank, t, o.rank)
		}
	}
}

func (c *checker) request(n *node, r request) { c.asked[r.id] = asker{n, n.boot} }

// unanswered is the other half of invariant 5.
func (c *checker) unanswered() {
	for id, a := range c.asked {
		if a.n.up && a.n.boot == a.boot && c.answers[id] == 0 && !a.n.keeps(id) {
			c.fail("n%d never answered request %d", a.n.rank, id)
		}
	}
}

type asker struct {
	n    *node
	boot uint64
}

// keeps says whether a request waits for something at this node.
func (n *node) keeps(id uint64) bool {
	for _, r := range n.waiting {
		if r.id == id {
			return true
		}
	}
	return slices.ContainsFunc(n.parked, func(r request) bool { return r.id == id }) ||
		slices.ContainsFunc(n.gated, func(g gatedReply) bool { return g.r.id == id })
}

func (c *checker) end(t Token, at Position) { c.ends[t] = append(c.ends[t], at) }

// answer is invariant 5: one answer to each request.
func (c *checker) answer(n *node, r request, a answer) {
	if c.answers[r.id]++; c.answers[r.id] > 1 {
		c.fail("n%d answers request %d a second time: %s", n.rank, r.id, a.code)
	}
	switch a.code {
	case "granted":
		c.answered[a.token] = true
	case "released":
		c.released[a.token] = true
	}
}

// bound is invariant 6.
func (c *checker) bound(n *node) {
	m, limit := n.m, freezeBound+c.w.cfg.Suspicion
	if held := m.now.Sub(max(m.frozenAt, n.resumed)); m.role == Active && m.frozen != 0 && held > limit {
		c.fail("n%d is frozen for %v", n.rank, held)
	}
	if held := m.now.Sub(max(m.parked.since, n.resumed)); m.parked.on && held > limit {
		c.fail("n%d keeps its clients parked for %v", n.rank, held)
	}
}

// settled is invariant 3: one active, the highest-priority node that is up,
// and the others in step with it.
func (c *checker) settled() string {
	var active *node
	for _, n := range c.w.nodes {
		if !n.up {
			continue
		}
		if active == nil {
			active = n
			if n.m.role != Active || n.m.frozen != 0 {
				return fmt.Sprintf("n%d is %s, frozen %d", n.rank, n.m.role, n.m.frozen)
			}
			continue
		}
		switch {
		case n.m.role != Standby || !n.m.follow.synced() || n.m.follow.rank != Rank(active.rank):
			return fmt.Sprintf("n%d is %s following n%d", n.rank, n.m.role, n.m.follow.rank)
		case n.m.pos != active.m.pos || n.state.sum() != active.state.sum():
			return fmt.Sprintf("n%d is at %s, n%d at %s", n.rank, n.m.pos, active.rank, active.m.pos)
		case len(n.parked)+len(n.waiting)+len(n.gated) > 0:
			return fmt.Sprintf("n%d keeps requests without an answer", n.rank)
		}
	}
	if active != nil && len(active.parked)+len(active.gated) > 0 {
		return fmt.Sprintf("n%d keeps requests without an answer", active.rank)
	}
	return ""
}
