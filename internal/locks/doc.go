// Package locks is Holdfast's lock table: who holds which key, who waits for
// it in which order, and what happens when a time ends. It is a pure state
// machine. Time is an argument; there are no goroutines, clocks, sockets or
// logs, and nothing depends on the order of a map. The same inputs give the
// same outputs, so every hard case is an ordinary test.
//
// # The rules
//
// A key is free, or held exclusively by one, shared by many, or by up to n
// holders of a semaphore. Whatever does not fit waits in one queue per key,
// strictly first in, first out: a shared acquire waits behind an exclusive one
// even where it could join the holders. Whatever ends a grant hands the key, in
// the same step, to as many at the head of the queue as it has room for, each
// with a new token. There is no instant in which a newcomer could slip in.
//
// A deadline counts when a request is read, not when Advance comes round to it.
// Due means: its instant is not after now. Before Do decides anything about a
// key, everything due on it has happened, as if at its own instant:
//
//   - holders whose lease or grace ended, and waiters at the head of the queue
//     whose wait or grace ended, in the order of those instants; at one instant
//     holders come first, then the order in which the deadlines were set;
//   - room that arose at instant d goes to the first waiter whose time ended at
//     d or later. One whose time ended before d is answered so when it comes
//     to the head;
//   - a waiter further back that is due stays unanswered until it is named
//     itself (a cancel, its ticket), comes to the head, or Advance sweeps it: it
//     changes nothing for anyone else. Only limits look at the count, so where
//     a limit would refuse, everything due in the whole table is done first;
//   - a grant is made at now, when it can be told: its lease runs from now.
//
// Advance does the same for the table, in the order of the deadlines.
//
// # Claims
//
// An acquire makes a claim. It waits or holds; a waiter that is granted stays
// the same claim. It belongs to a session, the client it answers. When the
// session detaches, a waiter without a ticket leaves at once; one with a ticket
// keeps its place for the grace; a Bound grant too; other grants live on by
// their lease. A waiter granted while nobody is connected holds undelivered: if
// nobody asks with its ticket by the end of the grace, it is withdrawn and the
// key goes on. Asking with the ticket again moves the claim to the session that
// asked last and answers the request left behind with Cancelled. On one key a
// ticket stands once: an acquire that names a standing ticket is taken as a
// repeat even without Retry.
//
// # Decide, then apply
//
// Do and Advance decide, and change what is replicated only through events:
// commit folds an event into the state and records it. A follower folds the
// same events with Apply, through the same code, so the two cannot drift apart.
// What belongs to this node alone is no event: sessions, graces, and waiters
// without a ticket, whose events are folded but not recorded.
//
// # One node of several
//
// Activate begins a reign. Nobody is connected to what was replicated, so for
// two seconds nothing expires: whoever could not extend while there was no
// active does so now. Rouse then walks over the keys, a piece at a time, starts
// the graces and serves the queues; a request that names a key before the walk
// is there does it for that key. StepDown is the way back: those who wait are
// told Moved, and what is left is what a follower knows.
//
// The ended set, kept where there are peers, records the tokens that ended
// other than by running out, each at a numbered place. It tells a grant that
// this node never heard of from one that is over, and is trimmed as far as
// every peer has it. Snapshot carries it, before the keys; both come in pieces
// that stand in the stream of events. Sum hashes what is replicated, as it
// changes, for nodes to compare.
//
// After a partition both sides have granted. Merge takes the other's state, and
// decides, by events, what stands: the union of the grants without what ended
// on either side, the longer of two leases of one grant, and the highest tokens
// where a key can't have them all. That depends on the tokens alone, so it comes out the
// same whichever side merges, and once it is done it changes nothing any more.
//
// # Structures
//
// Made for a million held keys and a hundred thousand waiters on one: records
// without pointers in slabs, found through linear hashing, ordered by a 4-ary
// heap of deadlines; holders of one key in a pairing heap; queues and sessions
// as linked lists through the records. Nothing is ever searched by a scan, and
// nothing grows by copying itself. Memory goes back as keys empty.
package locks
