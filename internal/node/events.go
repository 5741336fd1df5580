package node

import "holdfast/internal/locks"

// What a locks.Event is between nodes. After the length that replica.NextEvent
// takes off: a byte for the kind, a byte for the flags (those of locks.Flags
// that last; noTicket, sameKey, sameOrigin), then the kind's fields:
//
//	epoch    token
//	grant    key token lease slots ticket origin
//	extend   key token lease
//	end      key token reason
//	enqueue  key lease wait slots ticket origin
//	dequeue  key ticket reason
//	clear    -
//	reset    key
//	ended    token index
//	trim     index
//
// Numbers are uvarints, durations in microseconds rounded down, so that no
// lease grows on its way. A text is its length and its bytes; an origin is
// owner, remote and identity, then a byte for the transport (0: a text follows);
// a ticket is 16 bytes, left out with noTicket. In a piece of a snapshot, which travels whole, an
// event with the same key or origin as the one before says so with the flag and
// leaves the field out: a queue of 100,000 then takes 30 bytes a place. In the
// stream every event stands for itself, for the log is cut anywhere.
//
// Bytes after the known fields are ignored, and so is an event of an unknown
// kind: a later version may send both.
const (
	noTicket   = 1 << 0 // locks.Try, which does not last
	sameKey    = 1 << 6
	sameOrigin = 1 << 7
	lasting    = byte(locks.Shared | locks.Bound | locks.Contended)
)

// transports have a number each, so that most origins are shorter.
var transports = [...]string{1: "native", 2: "http", 3: "ws"}

func hasKey(k locks.EventKind) bool {
	switch k {
	case locks.EventGrant, locks.EventExtend, locks.EventEnd, locks.EventEnqueue, locks.EventDequeue, locks.EventReset:
		return true
	}
	return false
}
