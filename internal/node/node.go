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
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
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

const (
	// expiryPiece bounds the deadlines that are done under one hold of the mutex,
	// so that a storm of expiries does not stall everyone else (p99 in a storm of
	// 100,000: 0.3 instead of 1.1 ms).
	expiryPiece = 512

	// rousePiece bounds the keys that are looked at under one hold after an activation.
	rousePiece = 1000

	// longestSleep bounds the timer's sleep: a deadline further away is looked at again.
	longestSleep = time.Hour
)

// Run serves deadlines, and tells the machine the time, until ctx ends.
// Afterwards the node serves nothing.
func (n *Node) Run(ctx context.Context) error {
	timer := time.NewTimer(longestSleep)
	defer timer.Stop()
	defer n.end()
	var touched []*Session
	for {
		sleep := n.turn(&touched)
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-n.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Turn does all that is due now and returns how long to wait before the next
// call: what Run does, for callers with a clock of their own.
func (n *Node) Turn() time.Duration {
	var touched []*Session
	return n.turn(&touched)
}

// turn does all that is due, a piece at a time, and returns how long to sleep.
func (n *Node) turn(touched *[]*Session) time.Duration {
	for {
		now := n.lock()
		if n.cluster != nil && now >= n.tickAt {
			n.tickAt = now.Add(n.beat)
			n.stepLocked(now, tick)
			n.noteEndedLocked()
		}
		more := n.workLocked(now)
		n.timerAt = n.nextLocked()
		sleep := min(n.timerAt.Sub(n.clock.now()), longestSleep)
		n.refreshLocked()
		*touched = n.unlock(nil, (*touched)[:0])
		flush(*touched)
		clear(*touched) // a closed session is not kept alive by a scratch list
		if !more {
			return max(sleep, 0)
		}
	}
}

// workLocked does a piece of what is due in the table, and says whether there is more.
func (n *Node) workLocked(now locks.Time) bool {
	if n.cluster == nil && n.table.Next() > now && !n.rousing || n.standingLocked(now) != serves {
		return false
	}
	fx := n.takeEffects()
	n.recordDueLocked(now, fx)
	n.table.Advance(now, expiryPiece, fx)
	if n.rousing {
		n.rousing = n.table.Rouse(now, rousePiece, fx)
	}
	more := n.table.Next() <= now || n.rousing
	n.settleLocked(now, fx)
	return more
}

// end turns everybody away: there is nobody any more who would tell the machine the time.
func (n *Node) end() {
	now := n.lock()
	n.left = true
	n.turnAwayLocked(now)
	n.refreshLocked()
	flush(n.unlock(nil, nil))
}

// nextLocked is when the timer is needed next.
func (n *Node) nextLocked() locks.Time {
	next := locks.Never
	if n.isActiveLocked() && !n.frozen && !n.left {
		next = n.table.Next()
	}
	if n.cluster != nil {
		next = min(next, n.tickAt)
	}
	return next
}

// wakeTimerLocked tells the timer of a deadline before the one it waits for.
func (n *Node) wakeTimerLocked() {
	next := n.nextLocked()
	if next >= n.timerAt && !n.rousing {
		return
	}
	n.timerAt = next
	select {
	case n.wake <- struct{}{}:
	default: // it was told already and has not looked yet
	}
}

// lock begins a hold of the mutex, at the instant that it returns.
func (n *Node) lock() locks.Time {
	n.mu.Lock()
	n.batch++
	return n.clock.now()
}

// unlock ends it and appends the sessions that are to be flushed, other than own, to scratch.
func (n *Node) unlock(own *Session, scratch []*Session) []*Session {
	n.takeBackLocked()
	n.wakeTimerLocked()
	for _, s := range n.touched {
		if s != own {
			scratch = append(scratch, s)
		}
	}
	clear(n.touched)
	n.touched = n.touched[:0]
	reports := n.reports
	n.reports = nil
	n.mu.Unlock()
	n.write(reports)
	return scratch
}

// takeBackLocked withdraws grants that could not be told.
func (n *Node) takeBackLocked() {
	for len(n.untold) > 0 {
		batch := n.untold
		n.untold = nil
		now := n.clock.now()
		if n.standingLocked(now) != serves {
			return // they stand for whoever has their ticket, or for their lease
		}
		fx := n.takeEffects()
		for i := range batch {
			n.table.Do(now, &batch[i], fx)
		}
		n.settleLocked(now, fx)
	}
}

func flush(sessions []*Session) {
	for _, s := range sessions {
		s.sink.Flush()
	}
}

func (n *Node) isActiveLocked() bool { return n.machine.Role() == replica.Active }

// Now is the node's monotonic clock.
func (n *Node) Now() locks.Time { return n.clock.now() }

// WallTime converts an instant of the node's clock for people to read.
func (n *Node) WallTime(t locks.Time) time.Time { return n.clock.wall(t) }

// SetStopping makes the node say that it is about to go: it serves on, but is
// not ready any more.
func (n *Node) SetStopping() {
	n.lock()
	n.stopping, n.since, n.reason = true, time.Now(), "asked to stop"
	n.unlock(nil, nil)
}

// MarkAhead returns a token above every one that will be taken within d from
// now, as long as that is less than two million a second: what a data
// directory keeps, so that tokens go up over a restart.
func (n *Node) MarkAhead(d time.Duration) locks.Token {
	n.mu.Lock()
	defer n.mu.Unlock()
	ticks := uint64(d / tokenTick)
	byClock := n.cfg.Table.ClockAtZero + uint64(n.clock.now())/uint64(tokenTick) + ticks
	byCount := uint64(max(n.table.Stats().Highest, locks.Token(n.machine.Highest())))>>3 + ticks
	return locks.Token(max(byClock, byCount)+1) << 3
}

// Leapt says when tokens far above those in use were heard of, as those of
// another reign are: a mark that is kept should be stored anew at once.
func (n *Node) Leapt() <-chan struct{} { return n.leapt }

// watchLeapLocked looks for it; by the clock alone tokens rise by 16 million a second.
func (n *Node) watchLeapLocked() {
	const leap = locks.Token(time.Second/tokenTick) << 3
	now := max(n.table.Stats().Highest, locks.Token(n.machine.Highest()))
	if now > n.heard+leap {
		select {
		case n.leapt <- struct{}{}:
		default: // nobody has looked since the last one
		}
	}
	n.heard = now
}

// errClock is what New answers outside the years of the token clock.
func errClock(now time.Time) error {
	return fmt.Errorf("the system clock says %s: tokens need a clock between %s and %s; set the clock and start again",
		now.UTC().Format(time.RFC3339), tokenEpoch.Format(time.DateOnly), tokenEnd.Format(time.DateOnly))
}
