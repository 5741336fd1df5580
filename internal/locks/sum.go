package locks

import "encoding/binary"

// Sum is a hash of the replicated state, kept as it changes: equal on every
// node that has folded the same events, or a snapshot of them. It is a sum
// over what stands, so that neither order nor history matter.
//
// It covers which grants stand, which tickets wait, on which keys and in which
// mode, and how far the ended set reaches. It does not cover the order of a
// queue, leases and waits, origins, or the tokens in the ended set. Times can't
// be compared, since every node counts them on a clock of its own. The others
// are written by the event that adds the grant, waiter or place and never
// changed after: to differ in them, a node would have had to miss or repeat an
// event, and that changes the sum as well. Of a key it takes the first bytes and
// the length: a token or ticket already names one grant or attempt.
func (t *Table) Sum() uint64 {
	return t.sum + mix(t.ended.first^mixA, t.ended.next^mixB)
}

// trait is what the sum takes of a key and a claim's mode.
func (e *entry) trait(c *claim) uint64 {
	return binary.LittleEndian.Uint64(e.inline[:]) ^ uint64(e.keyLen)<<44 ^ uint64(e.slots)<<24 ^ uint64(c.flags&Shared)<<56
}

// ofGrant is a holder's part of the sum.
func (e *entry) ofGrant(c *claim) uint64 { return mix(c.id^mixA, e.trait(c)^mixB) }

// ofWaiter is a waiter's part of the sum: those without a ticket have none.
func (e *entry) ofWaiter(c *claim) uint64 {
	if c.ticket.IsZero() {
		return 0
	}
	h := mix(binary.LittleEndian.Uint64(c.ticket[:])^mixB, binary.LittleEndian.Uint64(c.ticket[8:])^mixA)
	return mix(h^mixB, e.trait(c)^mixA)
}
