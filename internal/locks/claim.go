package locks

import "time"

// state is what a claim is.
type state uint8

const (
	unused state = iota
	waiting
	holding
)

// claim is one attempt to acquire: a waiter first, where it has to queue, then
// a holder under the same record number.
type claim struct {
	deadline Time    // waiter: end of its wait, Never = no bound; holder: end of the lease
	grace    Time    // end of the time in which its client may come back; Never = none is running
	since    Time    // in the queue, or held, since then
	session  Session // where its replies and pushes go; 0 = nowhere
	id       uint64  // waiter: the request's Ref; holder: the token
	ticket   Ticket

	entry        uint32 // the key
	next, prev   uint32 // waiter: its neighbours in the queue; holder: siblings in the heap of holders (the first sibling's prev is the parent)
	child        uint32 // waiter: arrival number on its key; holder: first child in that heap
	snext, sprev uint32 // its session's list, see sessions.go
	heap         uint32 // place in the deadlines + 1; 0 = none
	origin       uint32
	lease        uint32 // asked for, milliseconds

	flags       Flags // Shared, Bound, Contended
	state       state
	undelivered bool // a holder that its client does not know to be one
	linked      bool // stands in its session's list
}

// end is when the claim ends unless something happens first.
func (c *claim) end() Time { return min(c.deadline, c.grace) }

func (c *claim) leaseTime() time.Duration { return time.Duration(c.lease) * time.Millisecond }

// millis rounds a lease up to whole milliseconds, the unit of claim.lease.
func millis(d time.Duration) uint32 {
	return uint32((d + time.Millisecond - 1) / time.Millisecond)
}

// entry is one key on which something stands.
type entry struct {
	root         uint32 // the holder that ends first: root of the heap of holders; 0 = nobody holds
	qhead, qtail uint32 // the queue; both 0 or neither
	waiters      uint32
	longKey      uint32 // where the key is, if it is longer than inline
	keyLen       uint16
	slots        uint16 // 1, or the slots of a semaphore
	holders      uint16
	reign        uint16          // to which it was brought, see reign.go
	inline       [inlineKey]byte // the key, or the beginning of a longer one, zeros after it
}

const inlineKey = 20

// many says whether several may hold the key at once, so that its holders are
// found by index.
func (e *entry) many(c *claim) bool { return e.slots > 1 || c.flags&Shared != 0 }
