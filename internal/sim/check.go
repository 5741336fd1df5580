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
	dear    bool // look at whole tables after each step

	tokens   map[locks.Token]*grant
	highest  map[int]locks.Token // the highest that a node took, over its restarts
	sums     map[replica.Position]uint64
	texts    map[replica.Position]string // verbose: the states
	lines    map[lineKey][]locks.Ticket  // who waits for a key, by the events of a node's reign
	lost     map[lineKey]locks.Token     // the highest token of a key that gave way in a merge, by its node's reign
	answers  map[uint64]int
	asked    map[uint64]asker
	holders  map[int][]*client // of a key, as the clients see it
	resource map[int]locks.Token
	lossAt   time.Duration // of the last promotion after a loss
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
		holders: map[int][]*client{}, resource: map[int]locks.Token{},
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
	if at != p.seen || c.dear {
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

// reign looks at a node that has begun one.
func (c *checker) reign(p *process) {
	switch p.n.Status().Reason {
	case replica.WhyLoss.String(), replica.WhyStart.String(), replica.WhyOfferBroken.String():
		c.lossAt = c.w.now
	}
	c.returned(p)
	c.higher(p)
	c.second(p)
	if !c.noLoss {
		return
	}
	for _, t := range c.sorted() {
		if g := c.tokens[t]; g.answered && !c.covers(p, g.at) {
			c.fail("n%d begins reign %d without token %d, which was granted at %s and answered", p.rank, p.epoch, t, g.at)
		}
	}
}

// returned is invariant 7 for what a reign begins with: nothing stands whose
// release the state descends from.
func (c *checker) returned(p *process) {
	p.n.Inspect(func(_ *replica.Machine, t *locks.Table) {
		for tok := range standing(t, locks.Time(c.w.now-p.bootAt)) {
			g := c.tokens[tok]
			if g == nil || !g.released {
				continue
			}
			if at, ok := c.endedIn(p, g, false); ok {
				c.fail("n%d begins reign %d with token %d of %s, which its holder released at %s", p.rank, p.epoch, tok, g.key, at)
			}
		}
	})
}

// gaveWay notes a grant that ended because a merge found another in its place.
func (c *checker) gaveWay(p *process, g *grant, e *locks.Event) {
	if len(g.ends) > 0 || e.Kind == locks.EventEnd && e.Reason != locks.BySupersede {
		return
	}
	k := lineKey{p, p.m.Position().Epoch, g.key}
	c.lost[k] = max(c.lost[k], e.Token)
}

// higher: of two exclusive grants of a key the higher token stays.
func (c *checker) higher(p *process) {
	for i, k := range kinds {
		if k.slots > 1 || k.shared > 0 {
			continue
		}
		v := p.t.View(0, []byte(keyName(i)), 1, 0)
		if lost := c.lost[lineKey{p, p.epoch, keyName(i)}]; len(v.Holders) > 0 && v.Holders[0].Token < lost {
			c.fail("n%d keeps token %d of %s, and ended the higher %d", p.rank, v.Holders[0].Token, keyName(i), lost)
		}
	}
}

// second: a broken link between two nodes that a third can reach makes no
// second active. Paths and nodes must have been so for long enough that
// everybody has heard of everybody.
func (c *checker) second(p *process) {
	const steady = 3 * time.Second
	for _, a := range c.w.nodes {
		if a == p || !a.steady(steady) || a.m.Role() != replica.Active || a.m.Frozen() || c.w.now-a.reignAt < steady {
			continue
		}
		for _, third := range c.w.nodes {
			if third != p && third != a && third.steady(steady) && p.steady(steady) &&
				c.w.steady(third.rank, a.rank, steady) && c.w.steady(third.rank, p.rank, steady) {
				c.fail("n%d becomes active beside n%d, though n%d hears both", p.rank, a.rank, third.rank)
			}
		}
	}
}

// inherit takes the queues with which a reign begins.
func (c *checker) inherit(p *process, epoch replica.Epoch) {
	for i := range kinds {
		key := keyName(i)
		var line []locks.Ticket
		for _, w := range p.t.View(locks.Time(c.w.now-p.bootAt), []byte(key), 0, 1000).Waiters {
			if !w.Ticket.IsZero() {
				line = append(line, w.Ticket)
			}
		}
		c.lines[lineKey{p, epoch, key}] = line
	}
}

func (c *checker) sorted() []locks.Token {
	all := make([]locks.Token, 0, len(c.tokens))
	for t := range c.tokens {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// state compares states at one position: a standby equals a prefix of its
// active, and a hand-off loses nothing.
func (c *checker) state(p *process, at replica.Position) {
	p.n.Inspect(func(m *replica.Machine, t *locks.Table) {
		if c.dear || c.steps%64 == 0 {
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

// Invariant 5: one answer to each request.

func (c *checker) request(x *conn, cmd locks.Command) { c.asked[cmd.Ref] = asker{x, cmd} }

func (c *checker) answer(p *process, r *locks.Reply) {
	if c.answers[r.Ref]++; c.answers[r.Ref] > 1 {
		c.fail("n%d answers request %d a second time: %s", p.rank, r.Ref, r.Code)
	}
	if c.verbose {
		c.w.log("n%d answers %d: %s %s %d", p.rank, r.Ref, r.Code, r.Key, r.Token)
	}
	switch g := c.tokens[r.Token]; r.Code {
	case locks.Granted:
		if g == nil {
			c.fail("n%d answers token %d, which nobody granted", p.rank, r.Token)
			return
		}
		g.answered = true
	case locks.Released:
		if g != nil {
			g.released = true
		}
	}
}

func (c *checker) unanswered() {
	for id, a := range c.asked {
		if a.x.p.running(a.x.boot) && c.answers[id] == 0 && !a.x.gone {
			c.fail("n%d never answered request %d: %v %s %s", a.x.p.rank, id, a.cmd.Op, a.cmd.Key, nameOf(a.cmd.Ticket))
		}
	}
}

// beside: a node that was paused for long enough to notice grants nothing once
// another became active meanwhile that it can reach, and was linked with,
// unless the offer of its state broke off.
func (c *checker) beside(p *process, t locks.Token) {
	back := p.resumed
	for _, o := range c.w.nodes {
		if o == p || !o.up || o.paused || o.m.Role() != replica.Active || p.pausedAt == 0 || p.reignAt >= back || o.reignAt <= p.pausedAt ||
			o.reignAt >= back || back-p.pausedAt <= c.w.cfg.Suspicion || !p.linked[o.rank] ||
			c.w.cutOff(o.rank, p.rank) || c.w.cutOff(p.rank, o.rank) || c.w.now-back > 500*time.Millisecond {
			continue
		}
		if o.epoch > p.epoch {
			c.fail("n%d, back from a pause, grants token %d beside n%d, which became active meanwhile", p.rank, t, o.rank)
		}
	}
}

// held: where nothing may be lost, clients never hold an exclusive key
// together; and always, what a fenced resource accepts only rises.
func (c *checker) held(x *client, r *locks.Reply) {
	if c.noLoss && kinds[x.key].wait == 0 {
		for _, o := range c.holders[x.key] {
			if o != x && (x.flags&locks.Shared == 0 || o.flags&locks.Shared == 0) && kinds[x.key].slots <= 1 {
				c.fail("%s holds %s with token %d, and %s with token %d", x.name, r.Key, r.Token, o.name, o.token)
			}
		}
		if n := int(kinds[x.key].slots); n > 1 && len(c.holders[x.key]) >= n && !slices.Contains(c.holders[x.key], x) {
			c.fail("%s has %d holders and %d slots", r.Key, len(c.holders[x.key])+1, n)
		}
	}
	if !slices.Contains(c.holders[x.key], x) {
		c.holders[x.key] = append(c.holders[x.key], x)
	}
}

func (c *checker) gaveBack(x *client) {
	c.holders[x.key] = slices.DeleteFunc(c.holders[x.key], func(o *client) bool { return o == x })
}

// final checks every answered grant against the state that is left.
func (c *checker) final(p *process) {
	p.n.Inspect(func(_ *replica.Machine, t *locks.Table) {
		if err := t.Check(); err != nil {
			c.fail("n%d: %v", p.rank, err)
		}
		standing := standing(t, locks.Time(c.w.now-p.bootAt))
		for _, tok := range c.sorted() {
			g := c.tokens[tok]
			_, ended := c.endedIn(p, g, true)
			switch {
			case c.w.now < g.until && g.answered && !standing[tok] && !ended && (c.covers(p, g.at) || c.noLoss):
				c.fail("token %d of %s was granted at %s and is gone from n%d at %s, though nobody ended it", tok, g.key, g.at, p.rank, p.m.Position())
			case c.noLoss && g.released && (!ended || standing[tok]):
				c.fail("token %d of %s was released, and n%d at %s does not know", tok, g.key, p.rank, p.m.Position())
			}
		}
	})
}

// settled is invariant 3: one active, the highest-priority node that is up,
// and the others in step with it.
func (c *checker) settled() string {
	var active *process
	var want string
	for _, p := range c.w.nodes {
		if !p.up {
			continue
		}
		var state string
		p.n.Inspect(func(_ *replica.Machine, t *locks.Table) { state = content(t, locks.Time(c.w.now-p.bootAt)) })
		if active == nil {
			active, want = p, state
			if p.m.Role() != replica.Active || p.m.Frozen() {
				return fmt.Sprintf("n%d is %s, frozen %v", p.rank, p.m.Role(), p.m.Frozen())
			}
			if state != "" {
				return "something is held or waited for yet"
			}
			continue
		}
		switch st := p.m.Status(); {
		case st.Role != replica.Standby || !st.Synced || st.Active != replica.Rank(active.rank):
			return fmt.Sprintf("n%d is %s, synced %v with n%d", p.rank, st.Role, st.Synced, st.Active)
		case st.Position != active.m.Position():
			return fmt.Sprintf("n%d is at %s, n%d at %s", p.rank, st.Position, active.rank, active.m.Position())
		case state != want:
			return fmt.Sprintf("n%d has\n%s\nn%d has\n%s", p.rank, state, active.rank, want)
		}
	}
	return ""
}

// each calls fn for what stands in a table, as a snapshot tells it.
func each(t *locks.Table, now locks.Time, fn func(*locks.Event)) {
	var fx locks.Effects
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = t.Snapshot(now, cursor, 1000, &fx)
		for i := range fx.Events {
			fn(&fx.Events[i])
		}
		fx.Reset()
	}
}

func standing(t *locks.Table, now locks.Time) map[locks.Token]bool {
	all := map[locks.Token]bool{}
	each(t, now, func(e *locks.Event) {
		if e.Kind == locks.EventGrant {
			all[e.Token] = true
		}
	})
	return all
}

// content is what a table says of its keys, in words; order and all but times.
func content(t *locks.Table, now locks.Time) string {
	keys := map[string]*struct{ held, queue []string }{}
	each(t, now, func(e *locks.Event) {
		k := keys[string(e.Key)]
		if k == nil {
			k = new(struct{ held, queue []string })
			keys[string(e.Key)] = k
		}
		switch e.Kind {
		case locks.EventGrant:
			k.held = append(k.held, fmt.Sprintf("%d:%s", e.Token, nameOf(e.Ticket)))
		case locks.EventEnqueue:
			k.queue = append(k.queue, nameOf(e.Ticket))
		}
	})
	var out []string
	for name, k := range keys {
		if name != "" {
			slices.Sort(k.held)
			out = append(out, fmt.Sprintf("%s %v < %v", name, k.held, k.queue))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func dump(t *locks.Table, now locks.Time) string {
	first, next := t.Ended()
	return fmt.Sprintf("%s\nended [%d,%d)", content(t, now), first, next)
}
