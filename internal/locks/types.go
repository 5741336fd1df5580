package locks

import "time"

// Time is an instant of this process's monotonic clock, in nanoseconds since
// the process chose its zero. The table never reads a clock: every entry is
// given the time.
type Time int64

// Never is after every other instant.
const Never = Time(1<<63 - 1)

// farthest is the last instant that is told from Never, 73 years after zero:
// beyond it nobody waits for the difference, and twice as much fits its type.
const farthest = Never / 4

// Add returns t + d, or Never where that is more than 73 years after zero.
func (t Time) Add(d time.Duration) Time {
	if d > 0 && Time(d) > farthest-t {
		return Never
	}
	return t + Time(d)
}

// Sub returns t - u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Token is a fencing token: 8·n + rank, strictly increasing on one node,
// unique over the cluster, below 2^53 until the year 2043. 0 is no token.
type Token uint64

// Session names one client of a front end: a connection, or one HTTP request.
// The node chooses the numbers: a slot in the low SlotBits bits, a generation
// above, so that a number never comes back. 0 is no session.
type Session uint64

// SlotBits is how many bits of a Session number its slot.
const SlotBits = 21

func (s Session) slot() int { return int(s & (1<<SlotBits - 1)) }

// Ticket names one attempt to acquire, so that repeating it is safe. The zero
// ticket means none.
type Ticket [16]byte

// IsZero says whether t names nothing.
func (t Ticket) IsZero() bool { return t == Ticket{} }

// Op is what a Command asks for.
type Op uint8

const (
	OpAttach       Op = iota + 1 // open Session with Origin
	OpDetach                     // Session is gone: its waiters leave, or keep their place for the grace
	OpAcquire                    // Key, Flags, Lease, Wait, Slots, Ticket
	OpRelease                    // Key, Token
	OpExtend                     // Key, Token, Lease
	OpCancel                     // Ref: withdraw this session's oldest waiter of that Ref
	OpCancelTicket               // Key, Ticket: withdraw that waiter, of whatever session
	OpUndelivered                // Key, Token: the grant never reached its client; withdraw it, or keep it for the grace
	OpForce                      // Key, Token: end that grant, reason Forced
	OpRemoveWaiter               // Key, Ticket: take that waiter out, as an operator
)

// Flags modify an acquire.
type Flags uint8

const (
	Try       Flags = 1 << iota // do not queue
	Retry                       // look the ticket up first
	Shared                      // a shared lock
	Bound                       // the grant lives with its session
	Contended                   // tell the holder when someone waits
	Stay                        // extend: leave the grant with the session that has it
)

// Command is one request. Key is borrowed until Do returns.
type Command struct {
	Op      Op
	Flags   Flags
	Slots   uint16 // acquire: 0 or 1 = one holder
	Session Session
	Ref     uint64 // chosen by the front end, echoed in the replies to this command
	Key     []byte
	Token   Token
	Lease   time.Duration // 0 = the default; above the maximum or negative = BadLease
	Wait    time.Duration // time in the queue; 0 = no bound; negative = BadWait
	Ticket  Ticket
	Origin  *Origin // attach: required; acquire: instead of the session's, may be nil

	hash   uint32 // of Key, where Prefetch has seen it
	hashed bool
}

// Origin says where a session comes from, for people who look and for the
// rule that only the identity that made a ticket may claim it.
type Origin struct {
	Owner     string // label that the client gave
	Remote    string // its network address
	Transport string // "native", "http", "ws"
	Identity  string // name of the authenticated identity; "" while auth is off
}

// Code is the outcome of a command, or what a reply tells unasked.
type Code uint8

const (
	Granted         Code = iota + 1
	Queued               // the acquire waits; a second reply will follow. Position says where
	NotGranted           // TRY and taken, or the wait ended; Held says which
	Cancelled            // the acquire was withdrawn: by a cancel, an operator, or its ticket asked again elsewhere
	Released             //
	Extended             //
	NotHolder            // this token does not hold this key
	CancelDone           // the waiter was withdrawn
	NothingPending       // no waiter under that Ref
	NoSuchTicket         // neither waits nor holds
	AlreadyGranted       // cancel by ticket: it holds the key; Token says with what
	WaiterRemoved        // an operator's remove-waiter was done
	ForceDone            // an operator's force-release was done
	HolderChanged        // force-release: that token does not hold the key
	BadKey               // length out of range (the edges check the characters)
	BadLease             // above the maximum or negative
	BadWait              // negative
	BadSlots             // SHARED with slots > 1
	BadRetry             // RETRY with a zero ticket
	Mismatch             // other slots stand on the key; Slots says how many
	NotAllowed           // the ticket belongs to another identity
	LimitKeys            // the key limit is reached
	LimitKeyBytes        // the limit on the bytes of all keys is reached
	LimitWaiters         // the limit on all waiters is reached
	LimitKeyWaiters      // the limit on waiters of one key is reached
	LimitHolders         // 65,535 holders of one key
	LimitPending         // the limit on waiters of one session is reached
	Lost                 // push: a grant of this session ended without a release; Reason says why
	ContendedPush        // push: someone waits for a key held with Contended; Waiters says how many
	Moved                // the node is not the active, or not any more: of the table to those who wait, of the node to all others
	numCodes
)

// Reason tells why a grant ended, or why a waiter left the queue.
type Reason uint8

const (
	ByRelease    Reason = iota + 1
	ByExpiry            // the lease ran out, or a Bound grant's session is gone for longer than the grace
	ByForce             // an operator
	ByWithdrawal        // could not be delivered
	BySupersede         // gave way in a merge
	ByTimeout           // waiter: its wait ended
	ByCancel            // waiter: withdrawn by its client
	ByRemoval           // waiter: taken out by an operator
	ByDetach            // waiter: its session is gone
	numReasons
)

// Reply goes to one session. Key is owned by the Effects it stands in, and
// good until their Reset.
type Reply struct {
	To       Session
	Ref      uint64
	Op       Op // of the command that is answered; 0 for a push
	Code     Code
	Held     bool // NotGranted: TRY and taken, rather than timed out
	Reason   Reason
	Slots    uint16 // Mismatch: what stands on the key
	Waiters  uint32 // ContendedPush
	Position uint32 // Queued: 1 = next in line
	Key      []byte
	Token    Token
	Lease    time.Duration // Granted, Extended: what is left
	Waited   time.Duration // Granted, NotGranted by timeout: time in the queue
	Ticket   Ticket        // Granted, Queued: the attempt's ticket
}

// EventKind is what an Event changes.
type EventKind uint8

const (
	EventEpoch   EventKind = iota + 1 // Token is the first of a new reign
	EventGrant                        // Key, Token, Lease, Slots, Flags, Ticket, Origin; a waiter of that ticket leaves the queue
	EventExtend                       // Key, Token, Lease
	EventEnd                          // Key, Token, Reason
	EventEnqueue                      // Key, Ticket, Lease, Wait, Slots, Flags, Origin
	EventDequeue                      // Key, Ticket, Reason
	EventClear                        // a snapshot begins: forget everything. Index is the next place of the ended set
	EventReset                        // a snapshot's next key: forget what stands on Key; its grants and waiters follow
	EventEnded                        // Token ended, as another node knows; Index is its place in the ended set, 0 = behind the last
	EventTrim                         // the ended set begins at the place Index
)

// Event is one change of the replicated state, in the order in which it
// happened. Durations are what is left at the instant of the event. Waiters
// without a ticket make no enqueue and dequeue events. Key is owned by the
// Effects it stands in, and good until their Reset.
type Event struct {
	Kind   EventKind
	Flags  Flags // Shared, Bound, Contended
	Reason Reason
	Slots  uint16
	Key    []byte
	Token  Token
	Lease  time.Duration
	Wait   time.Duration // 0 = no bound
	Ticket Ticket
	Origin *Origin // shared: never changed
	Index  uint64  // a place in the ended set
}

// Effects collects what Do and Advance bring about. The caller owns it,
// consumes it, and calls Reset.
type Effects struct {
	Record  bool // set by the caller: collect Events too; otherwise they are only counted
	Replies []Reply
	Events  []Event
	Seq     uint64 // number of events so far; Reset keeps it
	More    bool   // OpDetach: call again with the same command, there is more to take out

	keys []byte // what the Key fields point into
}

// Config bounds a table. A zero value is not usable; see DefaultConfig.
type Config struct {
	Rank             uint8         // 0 to 7: this node's index in the peers list
	Seed             uint64        // of the hash tables; random in production, so that nobody can craft collisions
	ClockAtZero      uint64        // token clock at Time 0: half-microseconds since 2026-01-01T00:00:00Z
	DefaultLease     time.Duration // > 0
	MaxLease         time.Duration // >= DefaultLease
	ReattachGrace    time.Duration // how long a ticket keeps its place without a session; >= 0
	MaxKeys          int           // keys held or waited for
	MaxKeyBytes      int64         // bytes of all those keys
	MaxWaiters       int           // waiters over all keys
	MaxWaitersPerKey int
	MaxPending       int  // waiters of one session
	KeepEnded        bool // a node with peers: record which tokens ended
}

// DefaultConfig returns the bounds of a server that was configured with nothing.
func DefaultConfig() Config {
	return Config{
		DefaultLease:     30 * time.Second,
		MaxLease:         24 * time.Hour,
		ReattachGrace:    5 * time.Second,
		MaxKeys:          10_000_000,
		MaxKeyBytes:      1 << 30,
		MaxWaiters:       1_000_000,
		MaxWaitersPerKey: 200_000,
		MaxPending:       65_536,
	}
}

// Stats counts what stands in the table.
type Stats struct {
	Keys     int // with a holder or a waiter
	Held     int // grants
	Waiters  int
	KeyBytes int64
	Highest  Token // the highest token taken or heard, with this rank
}

// MaxKeyLength is the longest key, in bytes.
const MaxKeyLength = 1024

// MaxHolders is the most holders that one key can have.
const MaxHolders = 65_535

// Mode is how a key is held.
type Mode uint8

const (
	ModeFree Mode = iota
	ModeExclusive
	ModeShared
	ModeSemaphore
)

// KeyView is what stands on one key, for people who look. It is a copy.
type KeyView struct {
	Key          string
	Mode         Mode
	Slots        uint16       // 1, or the slots of a semaphore
	Holders      []HolderView // in the order of their tokens
	HoldersTotal int
	Waiters      []WaiterView // the first of the queue, in order
	WaitersTotal int
}

// HolderView is one grant.
type HolderView struct {
	Origin  Origin
	Session Session // 0 or stale = not connected
	Token   Token
	Ticket  Ticket
	Shared  bool
	Since   Time          // when the grant was made
	Lease   time.Duration // left
}

// WaiterView is one waiter.
type WaiterView struct {
	Origin    Origin
	Session   Session // 0 = in grace
	Ticket    Ticket
	Shared    bool
	Position  int // 1 = next in line
	Since     Time
	Wait      time.Duration // left; 0 = no bound
	Connected bool
}

// Row is one key in a walk over the table: compact, for listings of millions.
// Where a key has several holders, the one of the lowest token stands for all.
type Row struct {
	Key        string
	Owner      string // of that holder
	Token      Token
	HeldSince  Time // of that holder; 0 where nobody holds
	LeaseEnds  Time // of that holder
	OldestWait Time // since when the first waiter waits; 0 where nobody waits
	Waiters    uint32
	Holders    uint32
	Slots      uint16
	Mode       Mode
}
