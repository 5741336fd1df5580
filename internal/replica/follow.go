package replica

// phase says how far a follower is with a stream.
type phase uint8

const (
	idle      phase = iota // nothing is asked: see retry
	asked                  // Follow or Fetch is out
	replacing              // half a snapshot is here
	inStep                 // the state equals the source's at the position
)

// following is where the events of this node's state come from: the active, or
// for a moment the node whose state is fetched before an activation.
type following struct {
	rank  Rank
	link  LinkID
	id    uint64
	phase phase
	fetch bool
	anew  bool // the state is broken; ask for a snapshot
	given bool // half a state, and the source has merged what it knew: ask as if there were none
	since Time // of the phase
	retry Time // idle: when to ask again
}

func (f *following) synced() bool { return f.rank != Nobody && !f.fetch && f.phase == inStep }

// from says whether a message of that stream is the one expected; everything
// else is of an earlier stream, on its way while this one was asked for.
func (m *Machine) from(r Rank, id uint64) bool {
	f := &m.follow
	return f.phase != idle && f.rank == r && f.id == id && f.link == m.peers[r].link && m.role != Active
}

// watchFollow keeps this node at the heels of the active that it hears.
func (m *Machine) watchFollow() {
	if m.role == Active {
		return
	}
	f, r := &m.follow, m.activeHeard()
	switch {
	case r == Nobody:
		if f.rank != Nobody && !f.fetch {
			m.unfollow()
		}
	case m.offer.to == r:
		// What this node alone knows is being merged; then it asks again.
	case f.rank != r || f.fetch:
		m.unfollow()
		m.ask4stream(r)
	case m.peers[r].link != f.link:
		f.phase = idle
		m.ask4stream(r)
	case f.phase == idle && m.now >= f.retry,
		f.phase == asked && m.now.Sub(f.since) >= m.cfg.Suspicion:
		m.ask4stream(r)
	}
}

func (m *Machine) unfollow() {
	m.dropStash()
	m.follow = following{rank: Nobody, anew: m.follow.anew}
}

// ask4stream asks the active for its stream from here on.
func (m *Machine) ask4stream(r Rank) {
	f := &m.follow
	f.rank = r
	if m.peers[r].link == 0 {
		return
	}
	*f = following{rank: r, link: m.peers[r].link, id: m.nextID(), phase: asked, since: m.now, anew: f.anew, given: f.given}
	if f.given && !m.whole {
		m.tell(r, &Follow{ID: f.id, Anew: true})
		return
	}
	m.tell(r, &Follow{ID: f.id, Position: m.pos, Lineage: m.lineage, Whole: m.whole, Anew: f.anew})
}

// resync drops the stream; a new one is asked for a little later, so that a
// source that is wrong for good is not asked in a loop.
func (m *Machine) resync(fact Fact, text string) {
	m.note(fact, m.follow.rank, text)
	m.follow.phase, m.follow.retry = idle, m.now.Add(m.cfg.Heartbeat)
}

func (m *Machine) resumed(r Rank, msg *Resume) {
	if m.from(r, msg.ID) && m.follow.phase == asked && !m.follow.fetch {
		m.stepIn()
	}
}

// stepIn: the state equals the active's at the position.
func (m *Machine) stepIn() {
	m.follow.phase, m.follow.since, m.follow.anew = inStep, m.now, false
	m.whole = true
	if m.role == Joining {
		m.changeRole(Standby, WhySynced)
	}
	m.acknowledge()
}

func (m *Machine) acknowledge() {
	m.tell(m.follow.rank, &Ack{ID: m.follow.id, Position: m.pos})
}

// stream takes in events. The position must follow this state's without a gap,
// and a new reign must follow the one that this state is at the end of.
func (m *Machine) stream(r Rank, msg *Stream) {
	f := &m.follow
	if !m.from(r, msg.ID) || f.phase == asked && !f.fetch {
		return
	}
	n, ok := countEvents(msg.Events)
	switch {
	case !ok || n == 0:
		m.resync(FactGap, "broken run of events")
		return
	case msg.Epoch == m.pos.Epoch && msg.First == m.pos.Seq+1:
	case msg.Epoch > m.pos.Epoch && msg.First == 1 && msg.Prev == m.pos:
		m.lineage = msg.Lineage
		m.pos = Position{Epoch: msg.Epoch}
		m.hear(Token(msg.Epoch))
		m.log.open(msg.Epoch, m.lineage)
	default:
		m.resync(FactGap, "expected what follows "+m.pos.String()+", got "+Position{msg.Epoch, msg.First}.String())
		return
	}
	m.pos.Seq += Seq(n)
	m.log.append(msg.Events)
	m.hear(msg.Highest)
	m.act.do(Apply{Run: msg.Events})
	if !f.fetch {
		m.acknowledge()
	}
}

// chunk takes in a piece of a snapshot. The first one replaces what this node
// had: from then on its state is half a snapshot, until the last.
func (m *Machine) chunk(r Rank, msg *Chunk) {
	f := &m.follow
	if !m.from(r, msg.ID) || f.fetch || f.phase == inStep {
		return
	}
	if _, ok := countEvents(msg.Events); !ok {
		m.resync(FactGap, "broken chunk")
		return
	}
	switch {
	case msg.First && f.phase == asked:
		f.phase, m.whole = replacing, false
		m.pos, m.lineage = msg.Position, msg.Lineage
		m.log.reset(m.pos, m.lineage)
		if m.role == Standby {
			m.changeRole(Joining, WhySnapshot)
		}
	case msg.First || f.phase != replacing || msg.Position != m.pos:
		m.resync(FactGap, "a chunk of "+msg.Position.String()+" at "+m.pos.String())
		return
	}
	m.hear(max(msg.Highest, Token(msg.Position.Epoch)))
	m.act.do(Apply{Run: msg.Events})
	if msg.Last {
		m.stepIn()
	}
}

// streamLost: whoever served the stream can't go on.
func (m *Machine) streamLost(r Rank, msg *Lost) {
	if m.takings[r].id == msg.ID && m.taking.has(r) {
		m.dropTaking(r, "taken back")
	}
	if !m.from(r, msg.ID) {
		return
	}
	if m.follow.fetch {
		m.unfollow()
		return
	}
	m.resync(FactStreamLost, "")
}
