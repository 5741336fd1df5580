package sim

import (
	"slices"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

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
