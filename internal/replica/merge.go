package replica

// taking is a state that comes in: to be merged, or to be adopted before an activation.
type taking struct {
	id    uint64
	link  LinkID
	offer Offer
	ready bool // all of it is here
}

// offered: a peer begins to send its state.
func (m *Machine) offered(r Rank, msg *Offer) {
	m.hear(max(msg.Highest, Token(msg.Position.Epoch)))
	if msg.Adopt {
		if m.from(r, msg.ID) && m.follow.fetch {
			m.startTaking(r, msg)
		}
		return
	}
	if msg.Active {
		m.peers[r].said.Yields = true // it gives way by its own word, whatever its last heartbeat said
	}
	if m.role != Active || m.reigning != 0 || m.waking.on || m.hasBetter() || m.offer.to != Nobody {
		m.tell(r, &OfferRefused{ID: msg.ID})
		return
	}
	if m.handoff.on {
		m.endHandoff("another state is offered")
	}
	m.startTaking(r, msg)
	if msg.Active {
		m.freeze(freezeMerging)
	}
}

func (m *Machine) startTaking(r Rank, msg *Offer) {
	if m.taking.has(r) {
		m.dropTaking(r, "offered anew")
	}
	m.taking.add(r)
	m.takings[r] = taking{id: msg.ID, link: m.peers[r].link, offer: *msg}
}

// offerChunk keeps a piece of an offered state aside until all of it is here.
func (m *Machine) offerChunk(r Rank, msg *OfferChunk) {
	t := &m.takings[r]
	if !m.taking.has(r) || t.id != msg.ID || t.link != m.peers[r].link || t.ready {
		return
	}
	if _, ok := countEvents(msg.Events); !ok {
		m.dropTaking(r, "broken chunk")
		return
	}
	m.act.do(StashOffer{Peer: r, ID: t.id, Run: msg.Events})
	if !msg.Last {
		return
	}
	t.ready = true
	if t.offer.Adopt {
		m.adoptState(r)
		return
	}
	m.newReign(WhyMerge, 0)
}

// adoptState replaces this node's state by the more advanced one that it fetched.
func (m *Machine) adoptState(r Rank) {
	t := &m.takings[r]
	m.taking.remove(r)
	if !m.follow.fetch || m.follow.id != t.id || m.role == Active {
		m.act.do(DropOffer{Peer: r, ID: t.id})
		return
	}
	m.act.do(AdoptOffer{Peer: r, ID: t.id})
	m.pos, m.lineage, m.whole = t.offer.Position, t.offer.Lineage, t.offer.Whole
	m.log.reset(m.pos, m.lineage)
	m.unfollow()
}

// mergeNext merges what is ready, now that the new reign has begun.
func (m *Machine) mergeNext() {
	m.each(func(r Rank, _ *peer) {
		if t := &m.takings[r]; m.taking.has(r) && t.ready {
			m.act.do(MergeOffer{Peer: r, ID: t.id})
		}
	})
}

// offerMerged: the merge's events are in the log. From here on the state
// descends from the other's, too, if that was whole.
func (m *Machine) offerMerged(in OfferMerged) {
	r := in.Peer
	if r < 0 || r >= MaxNodes || !m.taking.has(r) || m.takings[r].id != in.ID {
		panic("replica: a merge that was not asked for")
	}
	t := m.takings[r]
	m.taking.remove(r)
	if t.offer.Whole { // half a state is no proof of what its position says
		m.lineage = m.lineage.merged(t.offer.Position, t.offer.Lineage, m.pos.Seq)
		m.log.reign[len(m.log.reign)-1].lineage = m.lineage
	}
	m.note(FactOfferTaken, r, "")
	if m.peers[r].link == t.link {
		m.tell(r, &Merged{ID: t.id})
	}
	m.election.apart.remove(r)
	m.unfreezeMerging()
}

// unfreezeMerging serves again once no active's state is awaited any more.
func (m *Machine) unfreezeMerging() {
	awaited := false
	m.each(func(r Rank, _ *peer) { awaited = awaited || m.taking.has(r) && m.takings[r].offer.Active })
	if !awaited {
		m.unfreeze(freezeMerging)
	}
}

// watchTakings drops what will not arrive, and does not let a slow one freeze
// the service for long: until it is all here it is no loss to serve.
func (m *Machine) watchTakings() {
	m.each(func(r Rank, p *peer) {
		if t := &m.takings[r]; m.taking.has(r) && (p.link != t.link || !m.alive(r)) {
			if p.link == t.link && !t.offer.Adopt { // it must not wait for an answer
				m.tell(r, &OfferRefused{ID: t.id})
			}
			m.dropTaking(r, "the link broke")
		}
	})
	if m.frozen&freezeMerging != 0 && m.now.Sub(m.frozenAt) >= freezeBound {
		m.unfreeze(freezeMerging)
	}
}

func (m *Machine) dropTaking(r Rank, text string) {
	t := &m.takings[r]
	m.taking.remove(r)
	m.act.do(DropOffer{Peer: r, ID: t.id})
	m.note(FactOfferEnded, r, text)
	m.unfreezeMerging()
}

// dropTakings refuses all that is on its way here.
func (m *Machine) dropTakings(text string) {
	m.each(func(r Rank, _ *peer) {
		if m.taking.has(r) {
			m.tell(r, &OfferRefused{ID: m.takings[r].id})
			m.dropTaking(r, text)
		}
	})
}

// dropStash forgets what a fetch has brought so far.
func (m *Machine) dropStash() {
	if f := &m.follow; f.fetch && f.rank != Nobody && m.taking.has(f.rank) && m.takings[f.rank].offer.Adopt {
		m.dropTaking(f.rank, "not needed any more")
	}
}
