package replica

import "time"

// alive says whether a peer counts: it echoed a nonce of ours within the
// suspicion time, so the path carries both ways.
func (m *Machine) alive(r Rank) bool {
	p := &m.peers[r]
	return p.everHeard && !p.dead && m.now.Sub(p.heard) < m.cfg.Suspicion
}

// heartbeat takes in what a peer says of itself.
func (m *Machine) heartbeat(r Rank, h *Heartbeat) {
	p := &m.peers[r]
	if h.Nonce <= p.theirs {
		return
	}
	p.theirs = h.Nonce
	if h.Echo > p.echoed && h.Echo <= p.nonce {
		p.echoed, p.heard, p.everHeard, p.dead, p.refused = h.Echo, m.now, true, false, 0
	}
	if h.Role != p.said.Role {
		p.roleAt = m.now
	}
	if int(h.Active) >= len(m.cfg.Names) {
		h.Active = Nobody // of a longer list: this node can't go there
	}
	p.said, p.saidAt = *h, m.now
	p.owed = p.owed || h.Ask
	m.hear(max(h.Highest, Token(h.Position.Epoch))) // a reign that is to be above that epoch must know its token
	if h.Role == Active {
		m.damping.learn(m.now, h.TakeBacks)
	}
}

// saying is the part of a heartbeat that is told at once when it changes.
type saying struct {
	role                                                             Role
	stopping, whole, synced, yields, frozen, barred, waking, noBacks bool
	active                                                           Rank
	epoch                                                            Epoch
	hears                                                            ranks
	takeBacks                                                        int
}

func (m *Machine) saying() saying {
	s := saying{
		role: m.role, stopping: m.stopping, whole: m.whole, synced: m.follow.synced(), yields: m.waking.yields,
		frozen: m.frozen != 0, barred: m.barred(), waking: m.waking.on, noBacks: m.damping.off,
		active: m.held(), takeBacks: len(m.damping.times),
	}
	switch {
	case s.active == m.self:
		s.epoch = m.pos.Epoch
	case s.active != Nobody:
		s.epoch = m.peers[s.active].said.Position.Epoch
	}
	m.each(func(r Rank, _ *peer) {
		if m.alive(r) {
			s.hears.add(r)
		}
	})
	return s
}

// beat sends the heartbeats that are due, and all of them when what they say has changed.
func (m *Machine) beat() {
	s := m.saying()
	if s != m.said || m.now >= m.beatN {
		m.said, m.beatN = s, m.now.Add(m.cfg.Heartbeat)
		m.each(func(r Rank, _ *peer) { m.beatTo(r, false) })
		return
	}
	m.each(func(r Rank, p *peer) {
		if p.owed {
			m.beatTo(r, false)
		}
	})
}

// beatNow says goodbye: the last heartbeat tells that this node stops.
func (m *Machine) beatNow() { m.each(func(r Rank, _ *peer) { m.beatTo(r, false) }) }

func (m *Machine) beatTo(r Rank, ask bool) {
	p := &m.peers[r]
	if p.link == 0 {
		return
	}
	p.nonce++
	p.owed = false
	s := m.saying()
	h := &Heartbeat{
		Nonce: p.nonce, Echo: p.theirs, Ask: ask, Role: s.role, Stopping: s.stopping, Complete: s.whole, Synced: s.synced,
		Yields: s.yields, Frozen: s.frozen, Barred: s.barred, Waking: s.waking, Position: m.pos, Highest: m.highest,
		Active: s.active, ActiveEpoch: s.epoch, Hears: s.hears, TakeBacksOff: s.noBacks, TakeBacks: m.damping.ages(m.now),
	}
	if s.active >= 0 && s.active != m.self {
		h.ActiveAge = m.now.Sub(m.peers[s.active].saidAt)
	}
	m.send(p.link, Control, h)
}

// ask puts a question to every peer: what they say from now on answers it. A
// peer without a link is asked by the first heartbeat on its next one.
func (m *Machine) ask() {
	m.each(func(r Rank, p *peer) {
		p.asked = p.nonce + 1
		m.beatTo(r, true)
	})
}

// answered says whether a peer has said anything after the last question.
func (m *Machine) answered(r Rank) bool { return m.peers[r].echoed >= m.peers[r].asked }

// watchPeers notes who came and who went.
func (m *Machine) watchPeers() {
	m.each(func(r Rank, p *peer) {
		if alive := m.alive(r); alive != p.wasAlive {
			p.wasAlive = alive
			if alive {
				m.note(FactPeerUp, r, "")
			} else {
				m.note(FactPeerDown, r, "")
			}
		}
	})
}

// held is whom this node holds for the active; Nobody if it hears none.
func (m *Machine) held() Rank {
	if m.role == Active {
		return m.self
	}
	return m.activeHeard()
}

// activeHeard is the active among the alive peers: the one that is followed,
// else the one of the highest priority.
func (m *Machine) activeHeard() Rank {
	if r := m.follow.rank; r != Nobody && m.alive(r) && m.peers[r].said.Role == Active {
		return r
	}
	best := Nobody
	m.each(func(r Rank, p *peer) {
		if best == Nobody && m.alive(r) && p.said.Role == Active {
			best = r
		}
	})
	return best
}

// claim is how long ago a peer last heard directly the active that it names;
// ok is false where it names none but itself.
func (m *Machine) claim(r Rank) (active Rank, age time.Duration, ok bool) {
	p := &m.peers[r]
	if p.said.Active == Nobody || p.said.Active == r {
		return Nobody, 0, false
	}
	return p.said.Active, p.said.ActiveAge + m.now.Sub(p.saidAt), true
}

// pointer is the active that clients are sent to: the one that is held for it,
// else one that an alive peer hears.
func (m *Machine) pointer() Rank {
	to := m.held()
	m.each(func(r Rank, _ *peer) {
		if a, age, ok := m.claim(r); to == Nobody && ok && m.alive(r) && m.beyondReach(a, age) {
			to = a
		}
	})
	return to
}
