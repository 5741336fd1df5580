package locks_test

import (
	"slices"
	"time"

	. "holdfast/internal/locks"
)

// promote makes m what its follower knows at the instant at which that becomes
// the active: every client is gone, a waiter without a ticket was never heard of, nobody
// knows which grant was not delivered. Times move to the follower's clock,
// which is ahead by skew.
func (m *model) promote(now Time, rank uint8, skew time.Duration) {
	m.sessions = map[Session]Origin{}
	m.cfg.Rank = rank
	m.cfg.ClockAtZero -= uint64(skew) / 500
	m.forgetClients()
	for _, k := range m.keys {
		for _, c := range slices.Concat(k.holds, k.queue) {
			c.session, c.set = 0, 0
			c.limit = c.limit.Add(skew)
		}
	}
	m.reign(now)
}

// stepDown leaves what a follower knows, and tells those who wait.
func (m *model) stepDown() {
	for _, k := range m.keys {
		for _, w := range k.queue {
			m.tell(Reply{To: w.session, Ref: w.ref, Op: OpAcquire, Code: Moved, Key: k.name, Ticket: w.ticket})
		}
	}
	m.forgetClients()
}

// forgetClients takes out what is not replicated.
func (m *model) forgetClients() {
	m.calm = 0
	m.sets++
	for _, k := range m.keys {
		k.queue = slices.DeleteFunc(k.queue, func(w *claim) bool { return w.ticket.IsZero() })
		for _, c := range slices.Concat(k.holds, k.queue) {
			if c.token == 0 || c.flags&Bound != 0 {
				c.session = 0
			}
			if c.endSet() != c.limit {
				c.set = m.sets // one number for all: the table knows the order
			}
			c.grace, c.bound, c.later = Never, Never, false
		}
		m.forget(k)
	}
}

// reign begins one: graces count from now, and whoever a client that is gone
// kept out is let in when his key is roused.
func (m *model) reign(now Time) {
	m.activate(now, 0)
	m.began, m.calm = now, 0
	for _, k := range m.keys {
		m.calm, k.roused = now.Add(2*time.Second), false
		for _, c := range slices.Concat(k.holds, k.queue) {
			m.regrace(now, c)
		}
	}
}

// regrace gives a claim the grace that it has in the reign that begins now.
func (m *model) regrace(now Time, c *claim) {
	before, until := c.endSet(), now.Add(m.cfg.ReattachGrace)
	linked := m.connected(c.session) != 0 && (c.token == 0 || c.flags&Bound != 0)
	if grace := min(c.grace, c.bound); linked || grace != Never && grace >= until {
		return
	}
	c.grace, c.bound = Never, Never
	if c.token == 0 {
		c.grace = until
	} else if c.flags&Bound != 0 {
		c.bound = until
	}
	c.later, c.until = c.end() != before, before
}

// endSet is the end that stands among the table's deadlines.
func (c *claim) endSet() Time {
	if c.later {
		return c.until
	}
	return c.end()
}
