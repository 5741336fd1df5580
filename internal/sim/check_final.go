package sim

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

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
