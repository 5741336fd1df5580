package replica

import "time"

// watchRivals looks for another active. The one of lower priority gives way,
// and one that woke up and found another active gives way to it whatever its rank.
func (m *Machine) watchRivals() {
	if m.role != Active || m.reigning != 0 || m.waking.on {
		return
	}
	actives, rivals, better := ranks(0), ranks(0), Nobody
	later := false
	m.each(func(r Rank, p *peer) {
		if !m.alive(r) || p.link == 0 {
			return
		}
		if p.said.Role == Active {
			actives.add(r)
		}
		if p.said.Role == Active && !p.said.Waking {
			rivals.add(r)
			if m.yieldsTo(r) && better == Nobody {
				better = r
			}
		}
		follows := p.said.Active == m.self || p.said.Active == Nobody
		later = later || p.said.Role != Active && follows && p.said.Position.Epoch > m.pos.Epoch
	})
	m.noteRivals(rivals)
	if actives.empty() {
		m.waking.yields = false
	}
	if m.offer.to == Nobody && (better == Nobody && !m.waking.yields || m.now.Sub(m.frozenAt) >= freezeBound) {
		m.unfreeze(freezeOffering)
	}
	switch {
	case rivals.empty():
		if later && m.frozen == 0 && !m.handoff.on {
			m.newReign(WhyLaterEpoch, 0)
		}
	case m.handoff.on:
		m.endHandoff("two actives")
	case better != Nobody && m.offer.to == Nobody && m.now >= m.offer.retry:
		m.startOffer(better, true)
	}
}

// yieldsTo says whether this active gives way to another. Both sides come to
// the same answer, for each says in its heartbeats whether it yields.
func (m *Machine) yieldsTo(r Rank) bool {
	if theirs := m.peers[r].said.Yields; theirs != m.waking.yields {
		return m.waking.yields
	}
	return r < m.self
}

// hasBetter says whether this active hears one that it gives way to.
func (m *Machine) hasBetter() bool {
	better := false
	m.each(func(r Rank, p *peer) {
		better = better || m.alive(r) && p.link != 0 && p.said.Role == Active && m.yieldsTo(r)
	})
	return better
}

// noteRivals says once what there is to say about other actives. One that only
// a third node hears is no reason to stop: the state could not be handed over.
func (m *Machine) noteRivals(rivals ranks) {
	m.each(func(r Rank, p *peer) {
		if rivals.has(r) && !m.offer.rivals.has(r) {
			m.note(FactTwoActives, r, "")
		}
	})
	m.offer.rivals = rivals
	named := Nobody
	m.each(func(r Rank, _ *peer) {
		if a, age, ok := m.claim(r); ok && m.alive(r) && m.beyondReach(a, age) {
			named = a
		}
	})
	if named != Nobody && named != m.beyond {
		m.note(FactOtherActive, named, "")
	}
	m.beyond = named
}

// beyondReach says whether an active that another node names is one that this
// node should hear and does not.
func (m *Machine) beyondReach(a Rank, age time.Duration) bool {
	p := &m.peers[a]
	return a != m.self && age < m.cfg.Suspicion && !m.alive(a) && !(p.dead && m.now.Add(-age) <= p.deadAt)
}
