package replica

// outKind says what goes to a peer in bulk.
type outKind uint8

const (
	outNone   outKind = iota
	outStream         // events, after a snapshot where needed
	outState          // the state, that stands still
)

// snap says how far the snapshot of a stream is.
type snap uint8

const (
	snapNone snap = iota // not needed, or done
	snapWanted
	snapUnderWay
)

// outbound is what goes to one peer in bulk: one thing at a time. Its sender
// pulls a message whenever the last one has left, so a slow peer costs nothing
// but its place in the log.
type outbound struct {
	kind  outKind
	id    uint64
	woken bool

	// outStream
	fetch  bool // for a node that fetches before its activation: no acknowledgements
	next   cursor
	snap   snap
	acked  Position
	synced bool     // it has acknowledged the snapshot or the resumption
	mark   Position // an event that it has not acknowledged; zero: none is watched
	markAt Time     // when that event came
	hash   hashMark

	// outStream while a snapshot is under way, outState
	at    uint64 // the owner's cursor
	first bool
	state Position // outState: of the state that is offered
}

// followed answers a node that wants the stream.
func (m *Machine) followed(r Rank, msg *Follow) {
	p := &m.peers[r]
	p.out = outbound{woken: p.out.woken}
	if m.role != Active || m.reigning != 0 {
		m.tell(r, &Lost{ID: msg.ID})
		return
	}
	if next, ok := m.canReplay(msg.Position, msg.Whole); ok && !msg.Anew {
		p.out.kind, p.out.id, p.out.next = outStream, msg.ID, next
		m.tell(r, &Resume{ID: msg.ID})
		m.wake(r)
		return
	}
	if !m.lineage.covers(m.pos, msg.Position) {
		m.tell(r, &Diverged{ID: msg.ID})
		return
	}
	p.out.kind, p.out.id, p.out.snap = outStream, msg.ID, snapWanted
	m.wake(r)
}

// fetched answers a node that is about to become active and lacks what this
// one has: the events from there on, else the whole state.
func (m *Machine) fetched(r Rank, msg *Fetch) {
	p := &m.peers[r]
	if m.role == Active || m.reigning != 0 || !m.whole {
		m.tell(r, &Lost{ID: msg.ID})
		return
	}
	p.out = outbound{woken: p.out.woken, id: msg.ID}
	next, ok := m.canReplay(msg.Position, msg.Whole)
	switch {
	case ok:
		p.out.kind, p.out.fetch, p.out.next = outStream, true, next
	case m.lineage.covers(m.pos, msg.Position):
		p.out.kind, p.out.state = outState, m.pos
		m.tell(r, &Offer{ID: msg.ID, Adopt: true, Whole: m.whole, Position: m.pos, Lineage: m.lineage, Highest: m.highest})
	default:
		m.tell(r, &Diverged{ID: msg.ID})
		return
	}
	m.wake(r)
}

// canReplay says whether the log can bring a state on from p, and from where.
// An empty state is not brought on by the log, even where that reaches back to
// the beginning: an earlier process of that node may have acknowledged all of
// it, so what ended may be gone from the ended set. If the replay broke off
// halfway, grants that ended long ago would stand in the new process's state,
// and a merge would bring them back.
func (m *Machine) canReplay(p Position, whole bool) (cursor, bool) {
	if !whole || p.IsZero() {
		return cursor{}, false
	}
	return m.log.find(p)
}

func (m *Machine) wake(r Rank) {
	if p := &m.peers[r]; p.link != 0 && p.out.kind != outNone && !p.out.woken {
		p.out.woken = true
		m.act.do(Wake{Link: p.link})
	}
}

// appended takes in what the active's own state went through.
func (m *Machine) appended(in Events) {
	if m.role != Active {
		panic("replica: events of a node that is " + m.role.String())
	}
	n, ok := m.log.append(in.Run)
	if !ok {
		panic("replica: a run of events that is broken")
	}
	m.pos.Seq += Seq(n)
	m.highest = max(m.highest, in.Highest)
	m.each(func(r Rank, p *peer) {
		if p.out.kind != outStream {
			return
		}
		if p.out.mark == (Position{}) {
			p.out.mark, p.out.markAt = m.pos, m.now
		}
		m.wake(r)
	})
	if n > 0 && m.handoff.to != Nobody {
		m.failCandidate("the state changed")
	}
	m.watchGate()
}

// pull makes the next bulk message of a link.
func (m *Machine) pull(in Pull) {
	l := m.findLink(in.Link)
	if l == nil || l.peer == Nobody || m.peers[l.peer].link != l.id {
		return
	}
	r, max := l.peer, min(in.Max, maxStateBytes)
	out := &m.peers[r].out
	switch out.kind {
	case outNone:
		out.woken = false
	case outStream:
		m.pullStream(r, out, max)
	case outState:
		m.pullState(r, out)
	}
}

// pullStream sends what stands in the log, and a chunk of the snapshot once
// nothing does: a chunk must stand in the stream at the place where it was taken.
func (m *Machine) pullStream(r Rank, out *outbound, max int) {
	if out.snap == snapWanted {
		out.next, out.snap, out.at, out.first = m.log.head, snapUnderWay, 0, true
		m.act.do(TakeSnapshot{Link: m.peers[r].link})
		return
	}
	if out.hash.due(out.next) {
		m.send(m.peers[r].link, Bulk, &Hash{ID: out.id, Position: out.hash.pos, Hash: out.hash.sum})
		out.hash = hashMark{}
		return
	}
	start := len(m.act.buf)
	piece, next, ok := m.log.read(out.next, out.hash.limit(), max, m.act.buf)
	if !ok {
		m.tell(r, &Lost{ID: out.id})
		*out = outbound{woken: false}
		return
	}
	if piece.first != 0 {
		m.act.buf = piece.events
		events := m.act.buf[start:len(m.act.buf):len(m.act.buf)]
		m.send(m.peers[r].link, Bulk, &Stream{ID: out.id, Epoch: piece.epoch, First: piece.first, Prev: piece.prev,
			Lineage: piece.lineage, Highest: m.highest, Events: events})
		out.next = next
		return
	}
	if out.snap == snapUnderWay {
		m.act.do(TakeSnapshot{Link: m.peers[r].link, Cursor: out.at})
		return
	}
	out.woken = false
}

func (m *Machine) pullState(r Rank, out *outbound) {
	if out.state != m.pos { // what was sent is of another state
		m.tell(r, &Lost{ID: out.id})
		*out = outbound{}
		return
	}
	m.act.do(TakeSnapshot{Link: m.peers[r].link, Cursor: out.at, Offer: true})
}

// chunkTaken sends a piece of the state.
func (m *Machine) chunkTaken(in SnapshotChunk) {
	l := m.findLink(in.Link)
	if l == nil || l.peer == Nobody || m.peers[l.peer].link != l.id {
		return
	}
	out := &m.peers[l.peer].out
	start := len(m.act.buf)
	m.act.buf = append(m.act.buf, in.Run...)
	run := m.act.buf[start:len(m.act.buf):len(m.act.buf)]
	last := in.Next == 0
	switch {
	case out.kind == outState:
		m.send(l.id, Bulk, &OfferChunk{ID: out.id, Last: last, Events: run})
		m.offer.progress = m.now
		if last {
			*out = outbound{woken: true}
		}
	case out.kind == outStream && out.snap == snapUnderWay:
		msg := &Chunk{ID: out.id, Position: m.pos, First: out.first, Last: last, Highest: m.highest, Events: run}
		if out.first {
			msg.Lineage = m.lineage
		}
		m.send(l.id, Bulk, msg)
		if out.first = false; last {
			out.snap = snapNone
		}
	}
	out.at = in.Next
}
