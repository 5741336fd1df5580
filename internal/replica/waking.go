package replica

import "time"

// waking is what a process does that was paused: its view is old, and others
// may have gone on without it.
type waking struct {
	lastTick Time
	on       bool
	since    Time
	asked    ranks // who was linked
	until    Time  // how long a link to an active that only others hear is waited for; 0 = none was named
	yields   bool  // another became active meanwhile: this one wins over nobody
}

// pauseBound is how late a tick may come.
func (m *Machine) pauseBound() time.Duration { return (m.cfg.Suspicion + m.cfg.Heartbeat) / 2 }

// noticePause looks at every input: after a pause a message may come first.
func (m *Machine) noticePause() {
	gap := m.now.Sub(m.waking.lastTick)
	if gap <= m.pauseBound() || len(m.cfg.Names) == 1 || m.leaving {
		return
	}
	m.waking.lastTick = m.now
	m.note(FactWaking, Nobody, gap.String())
	m.waking.on, m.waking.since, m.waking.until, m.waking.asked = true, m.now, 0, 0
	m.each(func(r Rank, p *peer) {
		if p.link != 0 {
			m.waking.asked.add(r)
			p.since = m.now // it was this node that was silent
		}
	})
	m.prepared, m.election = prepared{}, m.election.restarted()
	if m.role == Active {
		m.freeze(freezeWaking)
		if m.handoff.to != Nobody {
			m.failCandidate("the process was paused")
		}
		m.handoff = handoff{to: Nobody}
	}
	m.ask()
}

// restarted forgets what was found out before a pause.
func (e election) restarted() election { return election{apart: e.apart, until: e.until} }

// watchWaking ends it.
func (m *Machine) watchWaking() {
	w := &m.waking
	if !w.on {
		return
	}
	waiting, over := false, m.now.Sub(w.since) >= m.cfg.Suspicion
	named := Nobody
	m.each(func(r Rank, p *peer) {
		answered := p.link != 0 && m.answered(r) && m.alive(r)
		waiting = waiting || w.asked.has(r) && !answered && !(p.dead && p.link == 0)
		if !answered || m.role != Active {
			return
		}
		if p.said.Role == Active {
			w.yields = true
			waiting = waiting || p.said.Waking // what is it, when it is awake?
		}
		if a, age, ok := m.claim(r); ok && m.beyondReach(a, age) {
			named = a
		}
	})
	if waiting && !over {
		return
	}
	if named != Nobody && !w.yields {
		if w.until == 0 {
			w.until = m.now.Add(m.cfg.Suspicion)
		}
		if m.now < w.until {
			return
		}
	}
	w.on = false
	m.note(FactAwake, Nobody, "")
	if w.yields {
		m.freeze(freezeOffering) // what it has is merged before anything is granted: see watchRivals
	}
	m.unfreeze(freezeWaking)
}
