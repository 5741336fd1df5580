package wire

// Version is the protocol version that this package speaks.
const Version = 1

// Sizes in bytes. A length is checked against them before anything is allocated.
const (
	HeaderBytes   = 12   // length, op, flags or status, key length, id
	MaxFrameBytes = 8192 // largest value of the length field: all that follows it
	MinFrameBytes = 8    // smallest value of the length field: the rest of the header
	MaxKeyBytes   = 1024
	MaxOwnerBytes = 255
	TicketBytes   = 16
)

// Op names what a frame is about. A reply echoes the op of its request.
type Op byte

// Requests are H, A, R, E, C and P; X answers a frame whose header could not
// be read; L, M and W are pushed by the server.
const (
	OpHello     Op = 'H'
	OpAcquire   Op = 'A'
	OpRelease   Op = 'R'
	OpExtend    Op = 'E'
	OpCancel    Op = 'C'
	OpPing      Op = 'P'
	OpError     Op = 'X'
	OpLost      Op = 'L'
	OpMoved     Op = 'M'
	OpContended Op = 'W'
)

// Status is the outcome in a reply.
type Status byte

// A letter may mean different things for different ops: A is "welcome" for H
// and "granted" for A; N is "not the holder" for R and E, "nothing pending" for C.
const (
	StatusPush       Status = 0
	StatusWelcome    Status = 'A'
	StatusGranted    Status = 'A'
	StatusNotGranted Status = 'T'
	StatusCancelled  Status = 'C'
	StatusReleased   Status = 'R'
	StatusExtended   Status = 'E'
	StatusNone       Status = 'N'
	StatusPong       Status = 'P'
	StatusMoved      Status = 'M'
	StatusError      Status = 'X'
)

// Flags are the bits of an acquire.
type Flags byte

const (
	FlagTry       Flags = 1  // do not queue
	FlagRetry     Flags = 2  // may have been sent before: look the ticket up
	FlagShared    Flags = 4  // a shared (read) lock
	FlagBound     Flags = 8  // the grant lives with the connection
	FlagContended Flags = 16 // tell the holder when someone starts to wait
	flagsKnown    Flags = 31
)

// Role is what a node says of itself in the hello's reply.
type Role byte

const (
	RoleActive  Role = 'A'
	RoleStandby Role = 'S'
	RoleJoining Role = 'J'
)

// Code tells why a request was answered with StatusError.
type Code uint16

const (
	CodeMalformed       Code = 1 // malformed frame or protocol misuse; the connection is closed after it
	CodeUnauthenticated Code = 2 // the connection is closed after it
	CodeNotAllowed      Code = 3 // not allowed for this key
	CodeBadArgument     Code = 4 // the message says which and its bound
	CodeLimit           Code = 5 // keys, waiters, pending requests or connections
	CodeUnavailable     Code = 6 // unavailable for now
	CodeMismatch        Code = 7 // slots or mode differ from what stands on the key
	CodeInternal        Code = 8
)

// Reason tells why a grant ended without a release, in a lost push.
type Reason byte

const (
	ReasonExpired    Reason = 'X' // the lease ran out
	ReasonForced     Reason = 'F' // released by an operator
	ReasonSuperseded Reason = 'S' // gave way after a cluster merge
)

// Ticket names one attempt to acquire, so that repeating it is safe. The zero
// ticket means none.
type Ticket [TicketBytes]byte

// IsZero says whether t names nothing.
func (t Ticket) IsZero() bool { return t == Ticket{} }

// Request is one frame from client to server. Which fields count depends on Op.
type Request struct {
	Op    Op
	Flags Flags
	ID    uint32 // 0 = ordered mode
	Key   []byte // after Decode it points into the decoded buffer

	// Hello. After Decode they point into the decoded buffer.
	Version  uint16
	Auth     []byte
	Owner    []byte
	Software []byte

	// Acquire.
	LeaseMS uint32 // acquire and extend; milliseconds, 0 = the server's default
	WaitMS  uint32 // milliseconds, 0 = no bound
	Slots   uint16 // 0 or 1 = exclusive
	Ticket  Ticket

	Token  uint64 // release and extend
	Target uint32 // cancel: the id of the acquire to withdraw
}

// Reply is one frame from server to client. Which fields count depends on Op
// and Status; pushes have Status 0 and ID 0.
type Reply struct {
	Op     Op
	Status Status
	ID     uint32
	Key    []byte // after Decode it points into the decoded buffer

	Token   uint64 // granted, lost, contended
	LeaseMS uint32 // granted and extended; what is left, milliseconds rounded down
	Waiters uint32 // contended
	Reason  Reason // lost

	Code    Code   // error
	Message []byte // error

	Addr []byte // moved: native address of the active, empty = none known; welcome: the same, of "active str"
	Node []byte // moved: its name; welcome: the name of the answering node

	// Welcome.
	Version        uint16
	Role           Role
	MaxKey         uint16
	DefaultLeaseMS uint32
	MaxLeaseMS     uint32
	Software       []byte
	ActiveNode     []byte
}
