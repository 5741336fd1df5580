package replica

// handoff is the active's side of handing over.
type handoff struct {
	on     bool
	why    Why
	limit  Rank // candidates are up to this rank
	only   Rank // an operator's choice; Nobody: any
	began  Time
	tried  ranks
	failed uint64 // the step in which the last candidate failed

	// The candidate at hand.
	to    Rank // Nobody: none yet
	link  LinkID
	id    uint64
	since Time
	sent  bool // Prepare is out
}

// stop ends the process: the active hands over first, a node that has just
// handed over sees to its clients first.
func (m *Machine) stop() {
	m.stopping = true
	if m.role != Active && !m.parked.on {
		m.exit(false, "stopped")
	}
}

// handoffRequested is an operator's wish. Afterwards nobody takes back, unless
// the hand-off was one back.
func (m *Machine) handoffRequested(to Rank) {
	if m.role != Active || m.handoff.on || m.frozen != 0 || m.reigning != 0 ||
		to != Nobody && (to < 0 || int(to) >= len(m.cfg.Names) || to == m.self) {
		m.note(FactHandoffEnded, to, "not active, busy, or no such node")
		return
	}
	m.startHandoff(WhyOperator, MaxNodes, to)
}

func (m *Machine) startHandoff(why Why, limit, only Rank) {
	m.handoff = handoff{on: true, why: why, limit: limit, only: only, began: m.now, to: Nobody}
}

// watchHandoff tries one candidate after the other.
func (m *Machine) watchHandoff() {
	if m.role != Active {
		return
	}
	if m.stopping && !m.handoff.on && m.frozen == 0 {
		m.startHandoff(WhyStop, MaxNodes, Nobody)
	}
	h := &m.handoff
	switch {
	case !h.on:
	case h.to == Nobody && m.frozen != 0:
		m.endHandoff("something else froze the service")
	case h.to == Nobody && h.failed == m.steps:
		// First the owner does what was parked.
	case h.to == Nobody:
		m.nextCandidate()
	case m.frozen&^freezeHandoff != 0:
		m.failCandidate("something else froze the service")
	case m.peers[h.to].link != h.link || !m.alive(h.to):
		m.failCandidate("the link broke")
	case m.now.Sub(h.since) >= prepareTime:
		m.failCandidate("not in step in time")
	}
}

// nextCandidate freezes and asks the highest-priority synced standby that was not tried.
func (m *Machine) nextCandidate() {
	h := &m.handoff
	m.each(func(r Rank, p *peer) {
		fits := !h.tried.has(r) && r <= h.limit && (h.only == Nobody || h.only == r)
		able := m.alive(r) && p.out.synced && !p.said.Stopping && !p.said.Barred && !p.said.Waking
		if h.to == Nobody && fits && able {
			h.to = r
		}
	})
	if h.to == Nobody {
		m.endHandoff("no synced standby is left to try")
		return
	}
	h.tried.add(h.to)
	h.link, h.id, h.since, h.sent = m.peers[h.to].link, m.nextID(), m.now, false
	m.note(FactHandoff, h.to, h.why.String())
	m.freeze(freezeHandoff)
	m.act.do(HashState{For: HashPrepare})
}

func (m *Machine) sendPrepare(hash uint64) {
	h := &m.handoff
	if h.to == Nobody || h.sent {
		return
	}
	h.sent = true
	m.tell(h.to, &Prepare{ID: h.id, Position: m.pos, Highest: m.highest, Hash: hash})
}

// failCandidate serves again before the next one is tried: that happens with
// the next input, when what was parked has been done.
func (m *Machine) failCandidate(text string) {
	m.note(FactHandoffEnded, m.handoff.to, text)
	m.handoff.to, m.handoff.failed = Nobody, m.steps
	m.unfreeze(freezeHandoff)
}

// endHandoff: it does not come about. A stopping node goes all the same.
func (m *Machine) endHandoff(text string) {
	m.note(FactHandoffEnded, Nobody, text)
	m.abandonHandoff()
	if m.stopping && m.frozen == 0 {
		m.act.do(Moved{To: Nobody})
		m.exit(false, "stopped without a successor")
	}
}

func (m *Machine) abandonHandoff() {
	m.handoff = handoff{to: Nobody}
	m.unfreeze(freezeHandoff)
}

// successorPrepared: from the instant in which Activate is sent this node is a
// standby and grants nothing more in this reign, whatever becomes of the message.
func (m *Machine) successorPrepared(r Rank, msg *Prepared) {
	h := &m.handoff
	if !h.on || h.to != r || !h.sent || h.id != msg.ID || m.peers[r].link != h.link || m.frozen != freezeHandoff {
		return
	}
	if !msg.OK {
		m.failCandidate("its state differs, or it follows nobody")
		return
	}
	if m.now.Sub(h.since) >= prepareTime {
		m.failCandidate("not in step in time")
		return
	}
	a := &Activate{ID: h.id, Position: m.pos, Highest: m.highest, Why: h.why, TakeBacks: m.damping.ages(m.now)}
	switch {
	case h.why != WhyOperator:
		a.TakeBacksOff, a.OffFor = m.damping.off, m.damping.offFor
	case h.to > m.self:
		a.TakeBacksOff, a.OffFor = true, m.cfg.Incarnation
	}
	if h.why == WhyTakeBack {
		m.damping.count(m.now)
	}
	m.openGate(m.pos)
	m.tell(r, a)
	m.becomeStandby(h.why)
}

// becomeStandby ends the reign.
func (m *Machine) becomeStandby(why Why) {
	m.parked = parked{on: true, since: m.now}
	if m.frozen != 0 {
		m.parked.since = m.frozenAt
	}
	m.frozen, m.owner = 0, false
	m.handoff = handoff{to: Nobody}
	m.election = election{}
	m.dropTakings("not active any more")
	m.each(func(r Rank, p *peer) {
		if p.out.kind != outNone {
			m.tell(r, &Lost{ID: p.out.id})
		}
		p.out = outbound{woken: p.out.woken}
	})
	m.follow = following{rank: Nobody}
	m.beyond = Nobody
	m.waking.yields = false
	m.damping.off = false
	m.act.do(BecomeStandby{})
	m.changeRole(Standby, why)
}

// parked is what an active that handed over owes its clients: where to go.
type parked struct {
	on    bool
	since Time // of the freeze
}

// watchParked answers them once the successor is heard, or when the freeze is at its bound.
func (m *Machine) watchParked() {
	if !m.parked.on {
		return
	}
	to := m.activeHeard()
	if to == Nobody && m.now.Sub(m.parked.since) < freezeBound {
		return
	}
	m.parked = parked{}
	m.act.do(Moved{To: to})
	if m.stopping {
		m.exit(false, "stopped")
	}
}
