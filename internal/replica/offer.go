package replica

// offering is this node's state on its way to the active: the loser of two
// actives', or that of a node which knows what the active may not.
type offering struct {
	to       Rank // Nobody: none
	link     LinkID
	id       uint64
	active   bool
	progress Time // the last piece of it left, or it began
	retry    Time // an active's: not before
	rivals   ranks
}

// startOffer freezes an active until it is known what became of its state.
func (m *Machine) startOffer(r Rank, active bool) {
	p := &m.peers[r]
	m.note(FactOffer, r, "")
	m.offer = offering{to: r, link: p.link, id: m.nextID(), active: active, progress: m.now, rivals: m.offer.rivals}
	if active {
		m.freeze(freezeOffering)
		m.dropTakings("a higher active is heard")
	}
	p.out = outbound{kind: outState, id: m.offer.id, state: m.pos, woken: p.out.woken}
	m.tell(r, &Offer{ID: m.offer.id, Active: active, Whole: m.whole, Position: m.pos, Lineage: m.lineage, Highest: m.highest})
	m.wake(r)
}

// diverged: the peer's state does not contain all that this one's does.
func (m *Machine) diverged(r Rank, msg *Diverged) {
	if !m.from(r, msg.ID) || m.follow.phase != asked {
		return
	}
	if m.follow.fetch {
		m.election.tried.add(r)
		m.election.apart.add(r)
		m.unfollow()
		return
	}
	m.follow.phase, m.follow.retry = idle, m.now.Add(retryTime)
	m.startOffer(r, false)
}

// watchOffers looks after the offers of both directions.
func (m *Machine) watchOffers() {
	m.watchTakings()
	o := &m.offer
	if o.to == Nobody {
		return
	}
	p := &m.peers[o.to]
	switch {
	case p.link != o.link || !m.alive(o.to):
		m.breakOffer("the link broke")
	case p.said.Role != Active:
		m.breakOffer("the other is not active any more")
	case p.out.kind != outState && p.out.kind != outNone || p.out.kind == outState && p.out.id != o.id:
		m.breakOffer("another transfer took its place")
	case m.now.Sub(o.progress) >= offerPatience:
		m.breakOffer("no progress") // slowness alone is no break
	}
}

// breakOffer: nobody knows whether the state was merged. The active serves on
// in a new reign, as after a loss: what it does from here on is not in what it offered.
func (m *Machine) breakOffer(text string) {
	active := m.offer.active
	m.endOffer(text)
	if active && m.role == Active {
		m.newReign(WhyOfferBroken, lossGap)
	}
}

func (m *Machine) endOffer(text string) {
	o := &m.offer
	m.note(FactOfferEnded, o.to, text)
	if out := &m.peers[o.to].out; out.kind == outState && out.id == o.id {
		*out = outbound{woken: out.woken}
	}
	m.offer = offering{to: Nobody, retry: m.now.Add(retryTime), rivals: o.rivals}
	m.follow.retry = m.now.Add(retryTime)
}

// merged: the active has all that this state knew.
func (m *Machine) merged(r Rank, msg *Merged) {
	o := m.offer
	if o.to != r || o.id != msg.ID || o.link != m.peers[r].link {
		return
	}
	m.offer = offering{to: Nobody}
	if o.active {
		m.becomeStandby(WhyTwoActives)
		return
	}
	m.follow.phase, m.follow.retry, m.follow.given = idle, m.now, !m.whole
}

// offerRefused: the other did not take it, so nothing was merged. A node that
// woke up beside another active stays frozen until it is taken: see watchRivals.
func (m *Machine) offerRefused(r Rank, msg *OfferRefused) {
	if m.offer.to != r || m.offer.id != msg.ID {
		return
	}
	m.endOffer("not taken now")
	if !m.waking.yields {
		m.unfreeze(freezeOffering)
	}
}
