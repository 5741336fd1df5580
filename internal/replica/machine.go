package replica

import (
	"fmt"
	"time"
)

// Machine decides for one node what it is in its cluster, and what goes to
// whom. It is not safe for concurrent use.
type Machine struct {
	// Static after construction.
	cfg     Config
	self    Rank
	started Time

	// The step at hand.
	now   Time
	act   *Actions
	steps uint64

	// What this node is.
	role     Role
	why      Why // of the role
	stopping bool
	leaving  bool // Exit was said: nothing is decided any more
	frozen   freezeCause
	frozenAt Time
	owner    bool // the state's owner was told to freeze, and not yet to unfreeze
	reigning Why  // an activation is under way, for this reason; 0 = none
	highest  Token

	// The state's place in history, and its last events.
	pos     Position
	lineage Lineage
	whole   bool // false: empty, or half a snapshot
	log     eventLog

	// The others.
	links []link
	peers [MaxNodes]peer
	ids   uint64 // the last one taken for a stream, an offer or a hand-off
	said  saying // what the last heartbeats said
	beatN Time   // when the next ones are due

	// One struct for each thing under way, in the file named after it.
	follow   following
	election election
	waking   waking
	handoff  handoff
	prepared prepared
	parked   parked
	offer    offering
	taking   ranks // whose offers are being received
	takings  [MaxNodes]taking
	damping  damping
	gate     gate
	hash     hashing

	beyond   Rank // the active that only a third node hears
	stranger struct {
		text string // of the last refusal of a node that is none of ours
		at   Time
	}
}

// New makes a machine at now. Its first inputs come right after.
func New(cfg Config, now Time) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg:     cfg,
		self:    cfg.Rank,
		started: now,
		now:     now,
		role:    Joining,
		highest: cfg.Highest,
		pos:     cfg.Position,
		lineage: cfg.Lineage,
		whole:   !cfg.Position.IsZero(),
		log:     newEventLog(cfg.LogBytes),
		beyond:  Nobody,
	}
	m.follow.rank, m.offer.to, m.handoff.to = Nobody, Nobody, Nobody
	m.log.reset(m.pos, m.lineage)
	m.waking.lastTick = now
	m.hash.next = now.Add(hashPeriod)
	return m, nil
}

// Step is the only door: it takes in what happened at now and appends to act
// what is to be done about it. Times must not go back from call to call.
func (m *Machine) Step(now Time, in Input, act *Actions) {
	m.now, m.act = max(m.now, now), act
	m.steps++
	m.noticePause()
	switch followed := m.take(in); {
	case m.leaving && m.stopping && m.role != Active:
		m.beat() // its process goes on for a while, and nobody should wait for its answer
	case followed && m.reigning == 0 && !m.leaving:
		m.settle()
	}
	m.tellUnfrozen()
	m.act = nil
}

// take takes in what happened. It reports whether anything may follow from it
// but what it did at once: events, pulls and acknowledgements come by the thousand.
func (m *Machine) take(in Input) bool {
	switch in := in.(type) {
	case Tick:
		m.waking.lastTick = m.now
	case LinkUp:
		m.linkUp(in)
	case LinkDown:
		m.linkDown(in.Link)
	case DialFailed:
		m.dialFailed(in)
	case Received:
		return m.received(in)
	case Pull:
		m.pull(in)
		return false
	case Events:
		m.appended(in)
		return false
	case Activated:
		m.activated(in)
	case StateHash:
		m.hashed(in)
	case SnapshotChunk:
		m.chunkTaken(in)
		return false
	case OfferMerged:
		m.offerMerged(in)
	case StopRequested:
		m.stop()
	case HandoffRequested:
		m.handoffRequested(in.To)
	default:
		panic(fmt.Sprintf("replica: unknown input %T", in))
	}
	return true
}

// settle does everything that the rules ask for as things stand. Each part
// looks at the state alone, so no order of inputs can make it miss its moment.
func (m *Machine) settle() {
	for _, watch := range watches {
		if watch(m); m.reigning != 0 || m.leaving {
			return // the next input goes on from here
		}
	}
}

var watches = [...]func(*Machine){
	(*Machine).watchLinks,
	(*Machine).watchPeers,
	(*Machine).watchWaking,
	(*Machine).watchOffers,
	(*Machine).watchRivals,
	(*Machine).watchHandoff,
	(*Machine).watchPrepared,
	(*Machine).watchFollow,
	(*Machine).watchElection,
	(*Machine).watchParked,
	(*Machine).watchTakeBack,
	(*Machine).watchGate,
	(*Machine).watchHash,
	(*Machine).beat,
}

// MayServe says whether requests may be decided at now: it is the active, not
// frozen, and its last tick is not so long ago that it may have been paused. A
// process that was stopped with requests in its buffers asks before it grants.
func (m *Machine) MayServe(now Time) bool {
	return m.role == Active && m.frozen == 0 && m.reigning == 0 && now.Sub(m.waking.lastTick) <= m.pauseBound()
}

// Role is what the node is.
func (m *Machine) Role() Role { return m.role }

// Position is the place of the state in history.
func (m *Machine) Position() Position { return m.pos }

// Whole says whether the state is complete: not empty, and not half a snapshot.
func (m *Machine) Whole() bool { return m.whole }

// Synced says whether the node is active, or follows the active without a gap.
func (m *Machine) Synced() bool { return m.role == Active || m.follow.synced() }

// Frozen says whether the node is active and grants nothing for now.
func (m *Machine) Frozen() bool { return m.frozen != 0 }

// Highest is the highest token taken or heard.
func (m *Machine) Highest() Token { return m.highest }

// Pointer says where requests should go, be it by hearsay, and whether a link
// to that node stands; Nobody where no active is known.
func (m *Machine) Pointer() (r Rank, linked bool) {
	r = m.pointer()
	return r, r == m.self || r != Nobody && m.peers[r].link != 0
}

// Status is what people see of the machine.
type Status struct {
	Role         Role
	Why          Why
	Stopping     bool
	Frozen       bool
	Position     Position
	Active       Rank // where requests should go, be it by hearsay; Nobody: none is known
	Highest      Token
	Whole        bool
	Synced       bool
	TakeBacksOff bool // an operator handed over; see HandoffRequested
	HandingOver  bool
	HandingTo    Rank // the candidate at hand; Nobody: none
	Peers        []PeerStatus
}

// PeerStatus is what people see of a peer.
type PeerStatus struct {
	Rank     Rank
	Alive    bool
	Role     Role
	Since    Time // since when it is known to have that role
	Position Position
	Synced   bool          // follows the active without a gap
	Lag      time.Duration // this node is active: since when the peer has not had all that it has; 0 = it has
	Refused  string        // why links to it are refused, by either side; "" = they are not
}

// Status describes the machine as of its last step.
func (m *Machine) Status() Status {
	s := Status{
		Role: m.role, Why: m.why, Stopping: m.stopping, Frozen: m.frozen != 0, Position: m.pos,
		Active: m.pointer(), Highest: m.highest, Whole: m.whole, Synced: m.Synced(),
		TakeBacksOff: m.damping.off, HandingOver: m.handoff.on, HandingTo: m.handoff.to,
	}
	m.each(func(r Rank, p *peer) { s.Peers = append(s.Peers, m.peerStatus(r, p)) })
	return s
}

func (m *Machine) peerStatus(r Rank, p *peer) PeerStatus {
	s := PeerStatus{Rank: r, Alive: m.alive(r), Role: p.said.Role, Since: p.roleAt, Position: p.said.Position, Synced: p.said.Synced || p.said.Role == Active}
	if m.role == Active {
		s.Synced = p.out.synced
		if p.out.synced {
			s.Position = p.out.acked
		}
		if p.out.synced && p.out.mark != (Position{}) {
			s.Lag = m.now.Sub(p.out.markAt)
		}
	}
	if m.refuses(r) {
		s.Refused = p.refused.String()
	}
	return s
}

// each calls f for every other node of the list, by rank.
func (m *Machine) each(f func(r Rank, p *peer)) {
	for i := range m.cfg.Names {
		if r := Rank(i); r != m.self {
			f(r, &m.peers[r])
		}
	}
}

func (m *Machine) nextID() uint64 {
	m.ids++
	return m.ids
}

// hear keeps the highest token. A serving active must stay above what peers
// have, or its grants would look old beside theirs.
func (m *Machine) hear(t Token) {
	if t <= m.highest {
		return
	}
	m.highest = t
	if m.role == Active && m.reigning == 0 {
		m.act.do(HearToken{Token: t})
	}
}

func (m *Machine) note(f Fact, r Rank, text string) {
	m.act.do(Note{Fact: f, Peer: r, Position: m.pos, Text: text})
}

// changeRole is the only place where the role changes.
func (m *Machine) changeRole(to Role, why Why) {
	m.act.do(RoleChanged{From: m.role, To: to, Position: m.pos, Why: why})
	m.role, m.why = to, why
}

func (m *Machine) exit(fault bool, why string) {
	if !m.leaving {
		m.leaving = true
		m.beatNow()
		m.act.do(Exit{Fault: fault, Why: why})
	}
}

// freezeCause is a set of reasons to grant nothing for a while.
type freezeCause uint8

const (
	freezeHandoff freezeCause = 1 << iota
	freezeWaking
	freezeOffering // this node's state is on its way to another active
	freezeMerging  // another active's is on its way here
	freezeCatchUp  // activated beside a state that is ahead and not on its lineage
)

func (m *Machine) freeze(c freezeCause) {
	if !m.owner {
		m.owner, m.frozenAt = true, m.now
		m.act.do(Freeze{})
	}
	m.frozen |= c
}

// unfreeze takes effect at the end of the step: the owner then does what was
// parked at once, and must not find half of a step's actions still to come.
func (m *Machine) unfreeze(c freezeCause) { m.frozen &^= c }

func (m *Machine) tellUnfrozen() {
	if m.owner && m.frozen == 0 && m.reigning == 0 {
		m.owner = false
		m.act.do(Unfreeze{})
	}
}

// Covers says whether the state descends from the event at p.
func (m *Machine) Covers(p Position) bool { return m.lineage.covers(m.pos, p) }
