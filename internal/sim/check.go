package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// checker watches a world and keeps what its invariants need to know. The
// first one that does not hold is the verdict.
type checker struct {
	w       *world
	fault   string
	verbose bool
	noLoss  bool // nothing that was answered may be lost

	tokens   map[locks.Token]*grant
	highest  map[int]locks.Token // the highest that a node took, over its restarts
	sums     map[replica.Position]uint64
	texts    map[replica.Position]string // verbose: the states
	lines    map[lineKey][]locks.Ticket  // who waits for a key, by the events of a node's reign
	lost     map[lineKey]locks.Token     // the highest token of a key that gave way in a merge, by its node's reign
	answers  map[uint64]int
	asked    map[uint64]asker
	holders  map[int][]*client // of a key, as the clients see it
	resource map[int]write     // what a key protects, by the key
	lossAt   time.Duration     // of the last promotion after a loss
	steps    int
}

// grant is what is known of a token.
type grant struct {
	by       int
	key      string
	at       replica.Position // of the event
	answered bool
	released bool          // and its holder was told
	until    time.Duration // when its lease is over at the latest
	ends     []ending
}

// ending is an event that ended a grant.
type ending struct {
	at     replica.Position
	ranOut bool
}

type asker struct {
	x   *conn
	cmd locks.Command
}

type lineKey struct {
	p     *process
	epoch replica.Epoch
	key   string
}

func newChecker(w *world) *checker {
	c := &checker{
		w: w, tokens: map[locks.Token]*grant{}, highest: map[int]locks.Token{}, sums: map[replica.Position]uint64{}, texts: map[replica.Position]string{},
		lines: map[lineKey][]locks.Ticket{}, lost: map[lineKey]locks.Token{}, answers: map[uint64]int{}, asked: map[uint64]asker{},
		holders: map[int][]*client{}, resource: map[int]write{},
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

// observe is told of every event that a node decides, first of all.
func (c *checker) observe(p *process, first replica.Position, events []locks.Event) {
	for i := range events {
		at := replica.Position{Epoch: first.Epoch, Seq: first.Seq + replica.Seq(i)}
		switch e := &events[i]; e.Kind {
		case locks.EventEpoch:
			c.began(p, e.Token)
		case locks.EventGrant:
			c.granted(p, at, e)
		case locks.EventExtend:
			if g := c.tokens[e.Token]; g != nil {
				g.until = max(g.until, c.w.now+e.Lease)
			}
		case locks.EventEnd, locks.EventEnded:
			if g := c.tokens[e.Token]; g != nil {
				c.gaveWay(p, g, e)
				g.ends = append(g.ends, ending{at, e.Reason == locks.ByExpiry})
			}
		case locks.EventEnqueue:
			k := lineKey{p, at.Epoch, string(e.Key)}
			c.lines[k] = append(c.lines[k], e.Ticket)
		case locks.EventDequeue:
			k := lineKey{p, at.Epoch, string(e.Key)}
			c.lines[k] = slices.DeleteFunc(c.lines[k], func(t locks.Ticket) bool { return t == e.Ticket })
		}
		if c.verbose {
			c.w.log("n%d %v event %v %s %d %s", p.rank, at, events[i].Kind, events[i].Key, events[i].Token, nameOf(events[i].Ticket))
		}
	}
}

func nameOf(t locks.Ticket) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s.%d", strings.TrimRight(string(t[:8]), "\x00"), t[15])
}

// granted is invariant 1, and FIFO: of those who wait the first is served, and
// nobody who comes later.
func (c *checker) granted(p *process, at replica.Position, e *locks.Event) {
	k := lineKey{p, at.Epoch, string(e.Key)}
	if int(e.Token&7) != p.rank { // it comes with another node's state
		c.lines[k] = slices.DeleteFunc(c.lines[k], func(t locks.Ticket) bool { return t == e.Ticket })
		c.comesBack(p, e)
		return
	}
	if g := c.tokens[e.Token]; g != nil {
		if g.by != p.rank || g.key != string(e.Key) {
			c.fail("token %d was taken by n%d for %s and again by n%d for %s", e.Token, g.by, g.key, p.rank, e.Key)
		}
		c.comesBack(p, e) // its own, back by a merge
		return
	}
	c.tokens[e.Token] = &grant{by: p.rank, key: string(e.Key), at: at, until: c.w.now + e.Lease}
	if e.Token <= c.highest[p.rank] && !c.forgotten() {
		c.fail("n%d took token %d after %d", p.rank, e.Token, c.highest[p.rank])
	}
	c.highest[p.rank] = max(c.highest[p.rank], e.Token)
	c.beside(p, e.Token)
	if line := c.lines[k]; len(line) > 0 && line[0] != e.Ticket {
		c.fail("n%d grants %s to %s with token %d, but %s was first in line", p.rank, e.Key, nameOf(e.Ticket), e.Token, nameOf(line[0]))
	} else if len(line) > 0 {
		c.lines[k] = line[1:]
	}
}

// comesBack is invariant 7. A node where the lease ran out knows nothing of a
// release elsewhere, and another may have extended it.
func (c *checker) comesBack(p *process, e *locks.Event) {
	g := c.tokens[e.Token]
	if g == nil || !g.released {
		return
	}
	if at, ok := c.endedIn(p, g, false); ok {
		c.fail("n%d grants %s with token %d again, which its holder released at %s", p.rank, e.Key, e.Token, at)
	}
}

// endedIn says whether a node's state descends from an event that ended a
// grant; the end of its lease counts only if ranOut says so.
func (c *checker) endedIn(p *process, g *grant, ranOut bool) (at replica.Position, ok bool) {
	for _, end := range g.ends {
		if (ranOut || !end.ranOut) && c.covers(p, end.at) {
			return end.at, true
		}
	}
	return at, false
}

// covers may be asked under the node's mutex.
func (c *checker) covers(p *process, at replica.Position) bool { return p.m.Covers(at) }

// forgotten is the one case in which tokens may go back: every node restarted,
// without a disk, within half a second of a promotion.
func (c *checker) forgotten() bool {
	for _, p := range c.w.nodes {
		if p.up && p.bootAt < c.lossAt {
			return false
		}
	}
	return !c.w.disk && c.w.now-c.lossAt < time.Second
}

// step looks at a process after each thing that it did.
func (c *checker) step(p *process) {
	m := p.m
	c.steps++
	at := m.Position()
	if m.Role() == replica.Active && at.Epoch != p.epoch {
		p.epoch = at.Epoch
		c.reign(p)
	}
	if at != p.seen {
		p.seen = at
		c.state(p, at)
	}
	c.bound(p)
}

// began is invariant 1 for the token of a reign.
func (c *checker) began(p *process, e locks.Token) {
	if int(e&7) != p.rank {
		c.fail("n%d begins reign %d, which is another node's token", p.rank, e)
	}
	if c.tokens[e] != nil || e <= c.highest[p.rank] && !c.forgotten() {
		c.fail("n%d begins reign %d after it took token %d", p.rank, e, c.highest[p.rank])
	}
	if heard := locks.Token(p.m.Highest()); e <= heard {
		c.fail("n%d begins reign %d, but has heard of token %d", p.rank, e, heard)
	}
	c.highest[p.rank] = max(c.highest[p.rank], e)
	p.reignAt = c.w.now
	c.inherit(p, replica.Epoch(e))
	c.tokens[e] = &grant{by: p.rank, at: replica.Position{Epoch: replica.Epoch(e), Seq: 1}}
}

// state compares states at one position: a standby equals a prefix of its
// active, and a hand-off loses nothing.
func (c *checker) state(p *process, at replica.Position) {
	p.n.Inspect(func(m *replica.Machine, t *locks.Table) {
		if c.steps%64 == 0 {
			if err := t.Check(); err != nil {
				c.fail("n%d: %v", p.rank, err)
			}
		}
		if !m.Whole() || at.IsZero() {
			return
		}
		sum := t.Sum()
		if c.verbose && c.texts[at] == "" {
			c.texts[at] = dump(t, locks.Time(c.w.now-p.bootAt))
		}
		if was, ok := c.sums[at]; !ok {
			c.sums[at] = sum
		} else if was != sum {
			c.fail("n%d has at %s\n%s\nanother node had\n%s", p.rank, at, dump(t, locks.Time(c.w.now-p.bootAt)), c.texts[at])
		}
	})
}

// bound is invariant 6.
func (c *checker) bound(p *process) {
	frozen := p.m.Frozen()
	switch limit := 4500*time.Millisecond + c.w.cfg.Suspicion; {
	case !frozen:
		p.frozenAt = 0
	case p.frozenAt == 0:
		p.frozenAt = c.w.now
	case c.w.now-max(p.frozenAt, p.resumed) > limit:
		c.fail("n%d is frozen for %v", p.rank, c.w.now-p.frozenAt)
	}
}
