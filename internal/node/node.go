// Package node is one Holdfast node: the lock table under one mutex, the
// sessions of the clients that use it, and the clock and timer that the table
// itself does not have.
//
// Every front end opens a Session per client and feeds it batches of commands.
// One batch takes the mutex once and reads the clock once; replies go to the
// Sinks of the sessions concerned, which only append to a buffer. When the
// mutex is free again, whoever made the replies flushes those sinks.
//
// Lock order: Node.mu before whatever a Sink locks, never the reverse. Nothing
// under the mutex blocks.
package node

import (
	crand "crypto/rand"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// Config is what a node needs to know.
type Config struct {
	Name    string        // this node's name, as people see it
	Version string        // of the program, vMAJOR.MINOR.PATCH and what follows
	Native  string        // advertised native address, host:port
	HTTP    []string      // advertised HTTP addresses, URLs
	Table   locks.Config  // start from locks.DefaultConfig; ClockAtZero, Seed, Rank and KeepEnded are set by New
	Mark    locks.Token   // tokens start above it: what the data directory kept; 0 = none
	Cluster *Cluster      // nil: a node of its own
	Clock   *Clock        // nil: the system's
	Random  func() uint64 // for what nobody may guess; nil: the system's

	// Observe is told of every event that this node decides, with the position of
	// the first, in order, under the node's mutex: it must not block, not call
	// back and not keep the events. nil = nobody listens. Only with a Cluster.
	Observe func(first replica.Position, events []locks.Event)
}

// Cluster makes a node one of several.
type Cluster struct {
	// Machine: Rank, Names and the settings; what the process itself knows is set
	// by New. Start from replica.DefaultConfig.
	Machine replica.Config

	// SnapshotPiece is how many claims a piece of a snapshot has at least. 0 = 1,000:
	// about 0.2 ms under the mutex.
	SnapshotPiece int

	// Log gets changes of role, hand-offs, peers that come and go. nil = none.
	Log *slog.Logger
}

// Sink is where the replies of one session go. Push is called under the node's
// mutex: it must not block and not call back, and copies what it keeps. Flush
// is called afterwards, without the mutex, by whoever made the replies; it must
// not block either. Both may be called by any goroutine; after the session's
// Close returned Push is not called any more, Flush still may be.
type Sink interface {
	Push(r *locks.Reply)
	Flush()
}

// Node is one node.
type Node struct {
	// Static after construction.
	cfg     Config
	cluster *Cluster // nil: a node of its own
	self    replica.Rank
	acked   bool // replies wait for a standby's acknowledgement
	log     *slog.Logger
	clock   clock
	started time.Time
	beat    time.Duration // between the machine's ticks
	piece   int           // claims in a piece of a snapshot
	wake    chan struct{} // one slot: the timer should look at the deadlines again
	failed  chan error    // why the node can't go on
	exited  chan struct{} // closed when the machine has nothing more to do
	leapt   chan struct{} // one slot: another reign's tokens were heard of

	links  Links // set before Run
	active atomic.Pointer[ActiveNode]

	mu       sync.Mutex // guards what follows
	table    *locks.Table
	machine  *replica.Machine
	sessions registry
	reports  []slog.Record // to be logged when the mutex is free
	batch    uint64        // numbers the holds of the mutex
	touched  []*Session    // to be flushed when the mutex is free
	timerAt  locks.Time    // what the timer waits for
	tickAt   locks.Time    // when the machine is told the time next

	// What the machine has asked for.
	frozen   bool          // nothing is decided, and the state stands still
	lapsed   bool          // it has handed over, and its clients do not know yet to whom
	left     bool          // it serves nothing any more
	rousing  bool          // the table is not through with its activation
	parked   []parked      // what came meanwhile
	stranded []locks.Reply // what waited when it handed over
	gate     gate
	untold   []locks.Command // grants that came out of the gate when their session was gone
	ended    endedMarks
	stash    [replica.MaxNodes]*locks.Table // states that peers offer
	peers    [replica.MaxNodes]peerInfo
	exitOnce sync.Once

	// Memory that is used again.
	effects []*locks.Effects
	actions []*replica.Actions
	enc     encoder
	chunk   encoder
	dec     decoder

	// For people who look.
	epoch    locks.Token
	heard    locks.Token // the highest at the last look, see Leapt
	alone    uint64      // events of a node of its own, which keeps no log
	since    time.Time   // of the role
	reason   string      // of the role
	stopping bool
	counts   []uint64 // replies by code
	tally    tally    // see history.go
	misfits  uint64   // another node's events that did not fit

	rows rowCache
	feed Feed
}

// New makes a node. One of its own is active at once; one of a cluster begins
// when its links and Run do. An error says what is wrong with the configuration
// or with the system's clock, which must be within the years in which tokens
// are exact.
func New(cfg Config) (*Node, error) {
	clock, err := newClock(cfg.Clock)
	if err != nil {
		return nil, err
	}
	if cfg.Random == nil {
		cfg.Random = systemRandom
	}
	cfg.Table.Seed = cfg.Random()
	cfg.Table.ClockAtZero = clock.tokensAtZero
	machine := cfg.machine(clock)
	if cfg.Cluster != nil {
		cfg.Table.Rank, cfg.Table.KeepEnded = uint8(machine.Rank), true
	}
	n := &Node{
		cfg:     cfg,
		cluster: cfg.Cluster,
		self:    machine.Rank,
		acked:   cfg.Cluster != nil && machine.Ack,
		log:     cfg.log(),
		clock:   clock,
		started: clock.Zero,
		beat:    machine.Heartbeat / 2,
		piece:   cfg.snapshotPiece(),
		wake:    make(chan struct{}, 1),
		failed:  make(chan error, 1),
		exited:  make(chan struct{}),
		leapt:   make(chan struct{}, 1),
		table:   locks.New(cfg.Table),
		timerAt: locks.Never,
		since:   clock.Zero,
		reason:  "started",
		chunk:   encoder{whole: true},
		counts:  make([]uint64, len(locks.Codes())+1),
	}
	if n.machine, err = replica.New(machine, machineTime(clock.now())); err != nil {
		return nil, err
	}
	n.active.Store(new(ActiveNode))
	n.lock()
	n.stepLocked(n.clock.now(), tick)
	n.refreshLocked()
	n.unlock(nil, nil)
	return n, nil
}

func systemRandom() uint64 {
	var b [8]byte
	crand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Connect gives the node its links to the others. It is called before Run, and
// before anything happens on them.
func (n *Node) Connect(l Links) { n.links = l }

func (n *Node) isActiveLocked() bool { return n.machine.Role() == replica.Active }

// Now is the node's monotonic clock.
func (n *Node) Now() locks.Time { return n.clock.now() }

// WallTime converts an instant of the node's clock for people to read.
func (n *Node) WallTime(t locks.Time) time.Time { return n.clock.wall(t) }

// SetStopping makes the node say that it is about to go: it serves on, but is
// not ready any more.
func (n *Node) SetStopping() {
	now := n.lock()
	n.stopping, n.since, n.reason = true, n.clock.wall(now), "asked to stop"
	n.unlock(nil, nil)
}
