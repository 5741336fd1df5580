package sim

import (
	"slices"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

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

// held: where nothing may be lost, clients never hold an exclusive key together.
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

// write is the last one that a fenced resource has taken.
type write struct {
	token locks.Token
	by    *client
}

// write is a holder's write to what an exclusive key protects. The resource
// refuses a token lower than the highest that it has seen. That happens where a
// holder was late, or was one of two; where nothing may be lost there is none
// such. And no two clients ever come with one token.
func (c *checker) write(x *client) {
	k := kinds[x.key]
	if k.shared > 0 || k.slots > 1 {
		return
	}
	last := c.resource[x.key]
	switch {
	case x.token == last.token && x != last.by:
		c.fail("%s and %s both write to %s with token %d", last.by.name, x.name, keyName(x.key), x.token)
	case x.token >= last.token:
		c.resource[x.key] = write{x.token, x}
	case c.noLoss && k.wait == 0:
		c.fail("%s writes to %s with token %d and is refused: %s was there with %d", x.name, keyName(x.key), x.token, last.by.name, last.token)
	}
}

func (c *checker) gaveBack(x *client) {
	c.holders[x.key] = slices.DeleteFunc(c.holders[x.key], func(o *client) bool { return o == x })
}
