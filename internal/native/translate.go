package native

import (
	"fmt"
	"math"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/wire"
)

// What a request becomes, and what a reply of the table becomes. Both are
// tables, and a test walks every code so that a new one cannot be forgotten.

// shape is what becomes of a reply of the table.
type shape uint8

const (
	unexpected shape = iota // nobody asks for it here: answered as an internal error
	silent                  // not told
	outcome                 // an answer with a status
	elsewhere               // an answer or a push that names the active
	refusal                 // an answer with an error code
	push
)

var shapes = [...]struct {
	shape  shape
	status wire.Status
	code   wire.Code
}{
	locks.Granted:         {outcome, wire.StatusGranted, 0},
	locks.Queued:          {silent, 0, 0},
	locks.NotGranted:      {outcome, wire.StatusNotGranted, 0},
	locks.Cancelled:       {outcome, wire.StatusCancelled, 0},
	locks.Released:        {outcome, wire.StatusReleased, 0},
	locks.Extended:        {outcome, wire.StatusExtended, 0},
	locks.NotHolder:       {outcome, wire.StatusNone, 0},
	locks.CancelDone:      {outcome, wire.StatusCancelled, 0},
	locks.NothingPending:  {outcome, wire.StatusNone, 0},
	locks.NoSuchTicket:    {shape: unexpected},
	locks.AlreadyGranted:  {shape: unexpected},
	locks.WaiterRemoved:   {shape: unexpected},
	locks.ForceDone:       {shape: unexpected},
	locks.HolderChanged:   {shape: unexpected},
	locks.BadKey:          {refusal, wire.StatusError, wire.CodeBadArgument},
	locks.BadLease:        {refusal, wire.StatusError, wire.CodeBadArgument},
	locks.BadWait:         {refusal, wire.StatusError, wire.CodeBadArgument},
	locks.BadSlots:        {refusal, wire.StatusError, wire.CodeBadArgument},
	locks.BadRetry:        {refusal, wire.StatusError, wire.CodeBadArgument},
	locks.Mismatch:        {refusal, wire.StatusError, wire.CodeMismatch},
	locks.NotAllowed:      {refusal, wire.StatusError, wire.CodeNotAllowed},
	locks.LimitKeys:       {refusal, wire.StatusError, wire.CodeLimit},
	locks.LimitKeyBytes:   {refusal, wire.StatusError, wire.CodeLimit},
	locks.LimitWaiters:    {refusal, wire.StatusError, wire.CodeLimit},
	locks.LimitKeyWaiters: {refusal, wire.StatusError, wire.CodeLimit},
	locks.LimitHolders:    {refusal, wire.StatusError, wire.CodeLimit},
	locks.LimitPending:    {refusal, wire.StatusError, wire.CodeLimit},
	locks.Lost:            {push, wire.StatusPush, 0},
	locks.ContendedPush:   {push, wire.StatusPush, 0},
	locks.Moved:           {elsewhere, wire.StatusMoved, 0},
}

// wireOps are the ops of the requests whose replies come from the table.
var wireOps = [...]wire.Op{
	locks.OpAcquire: wire.OpAcquire,
	locks.OpRelease: wire.OpRelease,
	locks.OpExtend:  wire.OpExtend,
	locks.OpCancel:  wire.OpCancel,
}

// lostReasons has a letter for each reason of which a client hears.
var lostReasons = [...]wire.Reason{
	locks.ByExpiry:    wire.ReasonExpired,
	locks.ByForce:     wire.ReasonForced,
	locks.BySupersede: wire.ReasonSuperseded,
}

// messages are what errors say, by the table's code: each names the argument or
// the limit, and the bound where this server knows it.
type messages [len(shapes)][]byte

func newMessages(maxLease time.Duration, maxPending int) *messages {
	m := new(messages)
	for code, text := range map[locks.Code]string{
		locks.BadKey:          fmt.Sprintf("key: 1 to %d bytes", wire.MaxKeyBytes),
		locks.BadLease:        fmt.Sprintf("lease_ms: at most %d, the server's maximum (HOLDFAST_MAX_LEASE)", maxLease.Milliseconds()),
		locks.BadWait:         "wait_ms: 0 to 4294967295",
		locks.BadSlots:        "slots: 0 or 1 with SHARED",
		locks.BadRetry:        "ticket: zero with RETRY; the ticket of the attempt that is repeated",
		locks.NotAllowed:      "ticket: it was made by another identity",
		locks.LimitKeys:       "keys: the node stands at its limit (HOLDFAST_MAX_KEYS)",
		locks.LimitKeyBytes:   "key bytes: the node stands at its limit (HOLDFAST_MAX_KEY_BYTES)",
		locks.LimitWaiters:    "waiters: the node stands at its limit (HOLDFAST_MAX_WAITERS)",
		locks.LimitKeyWaiters: "waiters: this key stands at its limit (HOLDFAST_MAX_WAITERS_PER_KEY)",
		locks.LimitHolders:    fmt.Sprintf("holders: this key has %d, the most there can be", locks.MaxHolders),
		locks.LimitPending:    fmt.Sprintf("pending: %d requests of this connection are, the most it may have (HOLDFAST_MAX_PENDING)", maxPending),
	} {
		m[code] = []byte(text)
	}
	return m
}

// frame fills to with the frame of r, but for its id. It returns false where
// there is none.
func (m *messages) frame(r *locks.Reply, to *wire.Reply) bool {
	s := &shapes[r.Code]
	to.Key, to.Status = r.Key, s.status
	switch s.shape {
	case push:
		return pushFrame(r, to)
	case elsewhere:
		return movedFrame(r, to)
	}
	to.Op = wireOps[r.Op]
	switch s.shape {
	case silent:
		return false
	case outcome:
		to.Token, to.LeaseMS = uint64(r.Token), millis(r.Lease)
	case refusal:
		to.Code, to.Message = s.code, m[r.Code]
		if r.Code == locks.Mismatch {
			to.Message = fmt.Appendf(nil, "slots: %d stand on this key, and every request has to name as many", r.Slots)
		}
	default: // unexpected
		to.Status, to.Code = wire.StatusError, wire.CodeInternal
		to.Message = fmt.Appendf(nil, "internal: outcome %v of %v", r.Code, r.Op)
	}
	return true
}

func pushFrame(r *locks.Reply, to *wire.Reply) bool {
	to.Token = uint64(r.Token)
	if r.Code == locks.ContendedPush {
		to.Op, to.Waiters = wire.OpContended, r.Waiters
		return true
	}
	if int(r.Reason) >= len(lostReasons) || lostReasons[r.Reason] == 0 {
		return false
	}
	to.Op, to.Reason = wire.OpLost, lostReasons[r.Reason]
	return true
}

// movedFrame is what a node says that does not serve, but for where to go. A
// cancel finds nothing: the acquire that it means is answered "moved" itself.
func movedFrame(r *locks.Reply, to *wire.Reply) bool {
	switch r.Op {
	case 0:
		to.Op, to.Status = wire.OpMoved, wire.StatusPush
	case locks.OpCancel:
		to.Op, to.Status = wire.OpCancel, wire.StatusNone
	case locks.OpAcquire, locks.OpRelease, locks.OpExtend:
		to.Op = wireOps[r.Op]
	default: // no client asked
		return false
	}
	return true
}

// limit is the frame of an acquire for which the connection has no room.
func (m *messages) limit(to *wire.Reply) {
	to.Op, to.Status = wire.OpAcquire, wire.StatusError
	to.Code, to.Message = wire.CodeLimit, m[locks.LimitPending]
}

// millis is a duration in whole milliseconds, rounded down, as a field holds it.
func millis(d time.Duration) uint32 {
	return uint32(min(max(d.Milliseconds(), 0), math.MaxUint32))
}

// command fills cmd with what r asks the table for. Ops the table knows nothing
// of are not given to it.
func command(r *wire.Request, cmd *locks.Command) {
	*cmd = locks.Command{} // cleared in place: a literal with values would be built apart and copied
	cmd.Ref = uint64(r.ID)
	cmd.Key = r.Key
	cmd.Lease = time.Duration(r.LeaseMS) * time.Millisecond
	switch r.Op {
	case wire.OpAcquire:
		cmd.Op = locks.OpAcquire
		cmd.Flags = locks.Flags(r.Flags) // the same bits: see TestFlags
		cmd.Slots = r.Slots
		cmd.Wait = time.Duration(r.WaitMS) * time.Millisecond
		cmd.Ticket = locks.Ticket(r.Ticket)
	case wire.OpRelease:
		cmd.Op = locks.OpRelease
		cmd.Token = locks.Token(r.Token)
	case wire.OpExtend:
		cmd.Op = locks.OpExtend
		cmd.Token = locks.Token(r.Token)
	}
}

// welcome is the answer to a hello. A node that stops still says that it is
// the active while it is. It takes the active from where "moved" takes it, so
// that the two never contradict each other.
func welcome(st *node.Status, active node.ActiveNode, software string, id uint32) *wire.Reply {
	role := wire.RoleStandby
	switch {
	case active.Here:
		role = wire.RoleActive
	case st.Role == node.Joining:
		role = wire.RoleJoining
	}
	return &wire.Reply{
		Op: wire.OpHello, Status: wire.StatusWelcome, ID: id, Version: wire.Version, Role: role,
		Node: []byte(st.Name), Addr: []byte(active.Native), ActiveNode: []byte(active.Name),
		MaxKey: wire.MaxKeyBytes, DefaultLeaseMS: millis(st.DefaultLease), MaxLeaseMS: millis(st.MaxLease),
		Software: []byte(software),
	}
}
