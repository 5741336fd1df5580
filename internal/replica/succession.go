package replica

// The order of candidates: class first, then rank.
const (
	classStandby  = iota // a complete state
	classJoining         // half a state, or of an earlier process
	classStopping        // about to go
	classBarred          // refused by too many; never a candidate
)

func class(role Role, whole, stopping, barred bool) int {
	switch {
	case barred:
		return classBarred
	case stopping:
		return classStopping
	case role != Joining && whole:
		return classStandby
	}
	return classJoining
}

// election is what happens between the loss of an active and the next one.
type election struct {
	on     bool
	start  Time
	barred bool // noted

	// Rule 5.
	fetching bool // at least once
	until    Time // for fetches, and for the offers that are awaited
	tried    ranks
	apart    ranks // are ahead with a state that does not descend from this one: they are to offer it
}

// watchElection makes this node the active when all rules say so. While one
// does not, it waits: the next input looks at all of them again.
func (m *Machine) watchElection() {
	if m.role == Active {
		m.watchCatchUp()
		return
	}
	if m.waking.on || m.prepared.on || m.offer.to != Nobody {
		return
	}
	if m.activeHeard() != Nobody {
		m.election = election{}
		return
	}
	e := &m.election
	if !e.on {
		*e = election{on: true, start: m.now}
		m.ask()
	}
	if m.barredNoted() || m.activeClaimed() || m.outranked() || !m.mayStart() || !m.haveAnswers() || !m.caughtUp() {
		return
	}
	m.promote()
}

func (m *Machine) barredNoted() bool {
	b := m.barred()
	if b && !m.election.barred {
		m.note(FactBarred, Nobody, "")
	}
	m.election.barred = b
	return b
}

// activeClaimed is rule 1: an alive peer hears an active one directly, be it
// this node itself, which has just handed over and must not jump back. (That no
// alive peer is active was seen before.)
func (m *Machine) activeClaimed() bool {
	claimed := false
	m.each(func(r Rank, _ *peer) {
		_, age, ok := m.claim(r)
		claimed = claimed || m.alive(r) && ok && age < m.cfg.Suspicion
	})
	return claimed
}

// outranked is rule 2: an alive node is before this one.
func (m *Machine) outranked() bool {
	own, before := class(m.role, m.whole, m.stopping, false), false
	m.each(func(r Rank, p *peer) {
		if m.alive(r) {
			c := class(p.said.Role, p.said.Complete, p.said.Stopping, p.said.Barred)
			before = before || c < own || c == own && r < m.self
		}
	})
	return before
}

// mayStart is rule 3: the start-up grace, unless every peer has been heard.
func (m *Machine) mayStart() bool {
	heard := true
	m.each(func(_ Rank, p *peer) { heard = heard && p.everHeard })
	return heard || m.now.Sub(m.started) >= m.cfg.StartGrace
}

// haveAnswers is rule 4: what counts was said after the loss was noticed.
func (m *Machine) haveAnswers() bool {
	if m.now.Sub(m.election.start) >= askTime {
		return true
	}
	all := true
	m.each(func(r Rank, _ *peer) { all = all && (!m.alive(r) || m.answered(r)) })
	return all
}

// caughtUp is rule 5: nobody alive is ahead, or what they have was fetched, or
// the time for that is over.
func (m *Machine) caughtUp() bool {
	e := &m.election
	ahead := m.ahead(e.tried)
	if ahead == Nobody {
		return true
	}
	if !e.fetching {
		e.fetching, e.until = true, m.now.Add(fetchTime)
	}
	if m.now >= e.until {
		m.note(FactBehind, ahead, "has "+m.peers[ahead].said.Position.String())
		return true
	}
	if m.follow.rank == ahead && m.follow.fetch && m.follow.link == m.peers[ahead].link {
		return false
	}
	m.unfollow()
	m.startFetch(ahead)
	return false
}

// ahead is the alive peer with the most advanced state, if it is more advanced
// than this node's: a complete one before any half, then the position. Half a
// state is not worth a fetch.
func (m *Machine) ahead(but ranks) Rank {
	best, whole, pos := Nobody, m.whole, m.pos
	m.each(func(r Rank, p *peer) {
		s := &p.said
		if m.alive(r) && p.link != 0 && !but.has(r) && s.Complete && (!whole || pos.Less(s.Position)) {
			best, whole, pos = r, true, s.Position
		}
	})
	return best
}

func (m *Machine) startFetch(r Rank) {
	m.follow = following{rank: r, link: m.peers[r].link, id: m.nextID(), phase: asked, fetch: true, since: m.now}
	m.tell(r, &Fetch{ID: m.follow.id, Position: m.pos, Lineage: m.lineage, Whole: m.whole})
}

// promote: this node is next.
func (m *Machine) promote() {
	why, gap := WhyLoss, lossGap
	switch {
	case len(m.cfg.Names) == 1: // nobody else ever took a token
		why, gap = WhyAlone, 0
	case m.role == Joining:
		why = WhyStart
	}
	m.damping.off = false
	m.becomeActive(why, Token(gap))
}

// becomeActive begins a reign. The state owner takes the first token.
func (m *Machine) becomeActive(why Why, gap Token) {
	m.unfollow()
	m.prepared = prepared{}
	if !m.election.apart.empty() {
		m.freeze(freezeCatchUp)
	}
	m.reigning = why
	m.act.do(BecomeActive{Heard: m.highest, Gap: gap})
}

// newReign begins another reign of the node that is active already.
func (m *Machine) newReign(why Why, gap Token) {
	m.reigning = why
	m.act.do(NewReign{Heard: m.highest, Gap: gap})
}

// activated: the token is taken, the reign has begun.
func (m *Machine) activated(in Activated) {
	if m.reigning == 0 || in.Epoch <= m.pos.Epoch {
		panic("replica: an epoch that was not asked for, or that goes back")
	}
	why, again := m.reigning, m.role == Active
	m.reigning = 0
	m.succeedOwn(in.Epoch)
	n, ok := m.log.append(in.Run)
	if !ok || n == 0 {
		panic("replica: a reign begins with at least one event")
	}
	m.pos.Seq, m.whole = Seq(n), true
	m.highest = max(m.highest, Token(in.Epoch))
	if !again {
		m.gate = gate{}
		m.each(func(_ Rank, p *peer) { p.out = outbound{woken: p.out.woken} })
		m.parked = parked{}
		m.waking.yields = false
		m.hash.next = m.now.Add(hashPeriod)
	}
	m.changeRole(Active, why)
	m.each(func(r Rank, p *peer) {
		if p.out.kind == outStream {
			m.wake(r)
		}
	})
	m.reignBegan(why)
}

// succeedOwn begins a reign's history. Half a snapshot descends from nothing:
// whoever has the whole of it must not be told that he has nothing to add.
func (m *Machine) succeedOwn(e Epoch) {
	if half := !m.whole && !m.pos.IsZero(); half {
		m.lineage = nil
		m.pos = Position{Epoch: e}
		m.log.reset(m.pos, nil)
		return
	}
	m.lineage = m.lineage.succeed(m.pos)
	m.pos = Position{Epoch: e}
	m.log.open(e, m.lineage)
}

// reignBegan does what the new reign was wanted for.
func (m *Machine) reignBegan(why Why) {
	switch why {
	case WhyMerge:
		m.mergeNext()
	case WhyOfferBroken:
		m.unfreeze(freezeOffering)
	}
}

// watchCatchUp: an active that knows of a state that is ahead and not on its
// lineage serves once that was offered and merged, or the time is over.
func (m *Machine) watchCatchUp() {
	if m.frozen&freezeCatchUp == 0 {
		return
	}
	e := &m.election
	m.each(func(r Rank, _ *peer) {
		if e.apart.has(r) && !m.alive(r) {
			e.apart.remove(r)
		}
	})
	if late := m.now >= e.until; late && !e.apart.empty() {
		m.note(FactBehind, e.apart.highestName(), "has not offered its state in time")
		e.apart = 0
	}
	if e.apart.empty() {
		m.election = election{}
		m.unfreeze(freezeCatchUp)
	}
}
