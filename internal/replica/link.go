package replica

import (
	"fmt"
	"slices"
	"time"
)

// link is a connection. It belongs to a peer once its hello was accepted.
type link struct {
	id      LinkID
	dialled bool
	since   Time
	peer    Rank // Nobody: no hello yet
}

// peer is another node of the list.
type peer struct {
	hello   Hello // of its current incarnation; Incarnation 0: never heard
	link    LinkID
	dialled bool // the link was dialled by this node
	since   Time // of the link

	heard     Time // when it last echoed a nonce of this link
	everHeard bool
	dead      bool // known to be gone, whatever heard says
	deadAt    Time // since when
	wasAlive  bool // as noted last
	said      Heartbeat
	saidAt    Time
	roleAt    Time // when it was first heard in this role

	nonce  uint64 // of the last heartbeat sent
	echoed uint64 // the highest that came back
	theirs uint64 // the highest of theirs on this link
	asked  uint64 // the nonce of the last question
	owed   bool   // it asked

	refusedAt Time // when a link to it was last refused, by either side
	refused   Refusal

	rival rival
	out   outbound
}

// rival is a newcomer under a name whose link stands: the first one is pinged.
type rival struct {
	link  LinkID
	hello Hello
	until Time
	nonce uint64
}

func (m *Machine) findLink(id LinkID) *link {
	for i := range m.links {
		if m.links[i].id == id {
			return &m.links[i]
		}
	}
	return nil
}

func (m *Machine) linkUp(in LinkUp) {
	m.links = append(m.links, link{in.Link, in.Dialled, m.now, Nobody})
	c := &m.cfg
	m.send(in.Link, Control, &Hello{
		Name: c.Names[m.self], Rank: m.self, Incarnation: c.Incarnation, Major: c.Major, Minor: c.Minor, Names: c.Names,
		Wall: m.wall(), Uptime: m.now.Sub(m.started), Software: c.Software, Native: c.Native, HTTP: c.HTTP,
		Limits: c.Limits, Position: m.pos, Lineage: m.lineage,
	})
}

func (m *Machine) wall() int64 { return m.cfg.WallAtZero + int64(m.now)/int64(time.Millisecond) }

func (m *Machine) send(id LinkID, lane Lane, msg Message) {
	m.act.do(Send{Link: id, Lane: lane, Msg: msg})
}

// tell sends a control message to a peer that has a link.
func (m *Machine) tell(r Rank, msg Message) {
	if id := m.peers[r].link; id != 0 {
		m.send(id, Control, msg)
	}
}

func (m *Machine) closeLink(id LinkID, why string) {
	m.act.do(CloseLink{Link: id, Why: why})
	m.linkDown(id)
}

// linkDown forgets a link. A new dial tells whether its peer is dead too.
func (m *Machine) linkDown(id LinkID) {
	for i := range m.links {
		if m.links[i].id != id {
			continue
		}
		r := m.links[i].peer
		m.links = append(m.links[:i], m.links[i+1:]...)
		if r == Nobody {
			return
		}
		p := &m.peers[r]
		if p.rival.link == id {
			p.rival = rival{}
		}
		if p.link == id {
			was := p.everHeard && p.heard >= p.since
			p.link, p.out, p.theirs, p.owed = 0, outbound{}, 0, false
			if was { // one that never carried anything, such as a refused one, waits for its backoff
				m.act.do(Redial{Peer: r})
			}
		}
		return
	}
}

// dialFailed: a closed link and a refused redial make a peer dead at once, so
// that a killed process is replaced in milliseconds.
func (m *Machine) dialFailed(in DialFailed) {
	if in.Peer < 0 || int(in.Peer) >= len(m.cfg.Names) || in.Peer == m.self {
		return
	}
	if in.Rejected {
		m.countRefusal(in.Peer, RefusedEntry, "by the peer, before the link was up")
	}
	if p := &m.peers[in.Peer]; in.Refused && p.link == 0 {
		p.dead, p.deadAt = true, m.now
	}
}

// received takes in one message. It reports whether anything may follow from it.
func (m *Machine) received(in Received) bool {
	l := m.findLink(in.Link)
	if l == nil {
		return false
	}
	msg, err := DecodeMessage(in.Data)
	if err != nil {
		m.refuse(l, RefusedGarbage, err.Error())
		return true
	}
	switch msg := msg.(type) {
	case nil:
		return false
	case *Refuse:
		m.wasRefused(l, msg)
		return true
	case *Hello:
		if l.peer == Nobody {
			m.greeted(l, msg)
		}
		return true
	}
	if l.peer == Nobody || m.peers[l.peer].link != l.id {
		return false
	}
	return m.heed(l.peer, msg)
}

// heed takes in a message of a peer whose hello was accepted.
func (m *Machine) heed(r Rank, msg Message) bool {
	switch msg := msg.(type) {
	case *Heartbeat:
		m.heartbeat(r, msg)
	case *Follow:
		m.followed(r, msg)
	case *Resume:
		m.resumed(r, msg)
	case *Diverged:
		m.diverged(r, msg)
	case *Chunk:
		m.chunk(r, msg)
	case *Stream:
		m.stream(r, msg)
	case *Ack:
		m.acked(r, msg)
		return m.handoff.to == r
	case *Lost:
		m.streamLost(r, msg)
	case *Hash:
		m.hashHeard(r, msg)
	case *Prepare:
		m.prepare(r, msg)
	case *Prepared:
		m.successorPrepared(r, msg)
	case *Activate:
		m.activate(r, msg)
	case *TakeBack:
		m.takeBackAsked(r)
	case *Fetch:
		m.fetched(r, msg)
	case *Offer:
		m.offered(r, msg)
	case *OfferChunk:
		m.offerChunk(r, msg)
	case *Merged:
		m.merged(r, msg)
	case *OfferRefused:
		m.offerRefused(r, msg)
	}
	return true
}

// greeted judges the first message of a link.
func (m *Machine) greeted(l *link, h *Hello) {
	if code, text := m.judge(h); code != 0 {
		l.peer = m.listed(h)
		m.refuse(l, code, text)
		return
	}
	if h.Name == m.cfg.Names[m.self] {
		m.metNamesake(l, h)
		return
	}
	l.peer = h.Rank
	p := &m.peers[h.Rank]
	own := *h
	own.Limits = append([]byte(nil), h.Limits...) // lent
	switch {
	case p.hello.Incarnation == h.Incarnation || p.hello.Incarnation == 0:
		m.adopt(l, &own)
	case p.link == 0:
		m.replace(l, &own)
	case p.rival.link != 0:
		m.refuse(l, RefusedDuplicate, m.duplicateText(h))
	default:
		p.asked = p.nonce + 1
		p.rival = rival{l.id, own, m.now.Add(m.cfg.Suspicion), p.nonce + 1}
		m.beatTo(h.Rank, true)
	}
}

// listed is the rank at which this node's list has the sender of a hello.
func (m *Machine) listed(h *Hello) Rank {
	r := Rank(slices.Index(m.cfg.Names, h.Name))
	if r == m.self {
		return Nobody
	}
	return r
}

// adopt makes l the link to its peer. Of two links to one incarnation, the one
// dialled by the lower priority is kept, by both sides' reckoning; of two
// dialled by the same side the newer, for the older one is dead.
func (m *Machine) adopt(l *link, h *Hello) {
	p, r := &m.peers[l.peer], l.peer
	if p.link != 0 {
		lower := l.dialled == (m.self > r)
		if p.dialled != l.dialled && !lower {
			m.closeLink(l.id, "second link to one peer")
			return
		}
		id, dialled := l.id, l.dialled
		m.closeLink(p.link, "second link to one peer")
		m.attach(r, id, dialled, h)
		return
	}
	m.attach(r, l.id, l.dialled, h)
}

func (m *Machine) attach(r Rank, id LinkID, dialled bool, h *Hello) {
	p := &m.peers[r]
	p.hello, p.link, p.dialled, p.since = *h, id, dialled, m.now
	if !m.answered(r) {
		p.asked = p.nonce + 1
	}
	p.echoed, p.theirs = p.nonce, 0 // only what is sent on this link may be echoed on it
	m.act.do(PeerKnown{Peer: r, Hello: h})
	m.beatTo(r, true)
}

// replace makes the newcomer the peer: its first incarnation is dead at once.
func (m *Machine) replace(l *link, h *Hello) {
	p, id, dialled := &m.peers[l.peer], l.id, l.dialled
	m.damping.restarted(p.hello.Incarnation)
	if p.link != 0 {
		m.closeLink(p.link, "another process took its name")
	}
	nonce, wasAlive := p.nonce, p.wasAlive
	*p = peer{nonce: nonce, wasAlive: wasAlive}
	m.attach(h.Rank, id, dialled, h)
}

// watchLinks closes what is silent and decides between namesakes.
func (m *Machine) watchLinks() {
	for i := len(m.links) - 1; i >= 0; i-- {
		if l := m.links[i]; l.peer == Nobody && m.now.Sub(l.since) >= m.cfg.Suspicion {
			m.closeLink(l.id, "no hello within the suspicion time")
		}
	}
	m.each(func(r Rank, p *peer) {
		if p.link != 0 && m.now.Sub(max(p.heard, p.since)) >= m.cfg.Suspicion {
			m.closeLink(p.link, "silent for the suspicion time")
		}
		if p.rival.link == 0 {
			return
		}
		l := m.findLink(p.rival.link)
		switch {
		case p.link == 0 || m.now >= p.rival.until:
			h := p.rival.hello
			m.replace(l, &h)
		case p.echoed >= p.rival.nonce:
			h := p.rival.hello
			p.rival = rival{}
			m.refuse(l, RefusedDuplicate, m.duplicateText(&h))
		}
	})
}

func (m *Machine) duplicateText(h *Hello) string {
	return fmt.Sprintf("a node named %q is in the cluster already and answers; give each node its own name", h.Name)
}
