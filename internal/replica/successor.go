package replica

// prepared is the successor's side of a hand-off.
type prepared struct {
	on      bool
	from    Rank
	link    LinkID
	ask     Prepare
	at      Time
	hashing bool
	replied bool
}

// prepare: the active asks whether this node can take over.
func (m *Machine) prepare(r Rank, msg *Prepare) {
	m.hear(msg.Highest)
	f := &m.follow
	if m.waking.on || m.stopping || m.role == Active || f.rank != r || !f.synced() || f.link != m.peers[r].link {
		m.tell(r, &Prepared{ID: msg.ID})
		return
	}
	m.prepared = prepared{on: true, from: r, link: f.link, ask: *msg, at: m.now}
}

// watchPrepared answers once the state is where the active's is, and falls
// back when it is never told to activate.
func (m *Machine) watchPrepared() {
	p, from := &m.prepared, m.prepared.from
	switch {
	case !p.on:
	case m.peers[p.from].link != p.link: // Activate could not count any more
		m.prepared = prepared{}
		m.note(FactPrepareEnded, from, "the link broke")
	case m.now.Sub(p.at) >= m.cfg.Suspicion:
		m.prepared = prepared{}
		m.note(FactPrepareEnded, from, "never told to activate")
	case !p.hashing && m.pos == p.ask.Position && m.follow.synced():
		p.hashing = true
		m.act.do(HashState{For: HashPrepared})
	}
}

func (m *Machine) comparePrepared(hash uint64) {
	p := &m.prepared
	if !p.on || p.replied {
		return
	}
	if hash != p.ask.Hash {
		m.tell(p.from, &Prepared{ID: p.ask.ID})
		m.prepared = prepared{}
		m.mend()
		return
	}
	p.replied = true
	m.tell(p.from, &Prepared{ID: p.ask.ID, OK: true})
}

// activate: the hand-off's point of no return, as the successor sees it. It
// counts only while the prepare is fresh: one that lay in a buffer while this
// process was paused, or while the link stood still, comes when others may
// have chosen another active already.
func (m *Machine) activate(r Rank, msg *Activate) {
	m.hear(msg.Highest)
	p := &m.prepared
	if !p.on || !p.replied || p.from != r || p.ask.ID != msg.ID || p.link != m.peers[r].link || msg.Position != m.pos ||
		m.waking.on || m.role == Active || m.now.Sub(p.at) >= m.cfg.Suspicion {
		m.note(FactPrepareEnded, r, "told to activate too late")
		return
	}
	m.peers[r].said.Role = Standby // its heartbeat that says so is behind this message
	m.damping.take(m.now, msg)
	m.election.apart = 0
	m.becomeActive(msg.Why, 0)
}
