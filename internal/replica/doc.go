// Package replica decides for one node of a cluster who is active and what is
// replicated to whom. It is a pure state machine: messages, link changes and
// the time go in, messages and requests to the state's owner come out. It
// starts no goroutine, reads no clock and opens no socket, so whole clusters
// run through thousands of histories of crashes, pauses and partitions in a
// test. It knows no locks: of an event it sees the place in the stream and the bytes.
//
// # One door
//
// Step takes one input and appends to Actions what is to be done, in order. An
// input changes what the machine knows; then settle lets every rule look at
// the whole of it. No rule waits for a particular input, so none can miss its
// moment, and "wait" is written as "not yet". Actions that ask for an answer
// (BecomeActive, TakeSnapshot, HashState, MergeOffer) are answered while they
// are carried out, before any other input. Actions may lead to inputs at once
// (Unfreeze: what was parked makes Events); the actions after it come later.
//
// # The conversation
//
// A link begins with a Hello from both sides; either may Refuse. From then on
// both send Heartbeats, at least every Config.Heartbeat and at once when what
// they say changes. A heartbeat carries a nonce and echoes the other's: only
// who echoes is alive. One with Ask is answered at once.
//
// A node that is not active sends the active a Follow with its position. The
// answer is
//
//	Resume    the log reaches back to there: Stream messages follow;
//	Chunk     a snapshot: chunks and events mixed, each chunk taken at the
//	          position where it stands, the first replaces what was there;
//	Diverged  the state knows what the active does not: Offer it, wait for
//	          Merged, and Follow again;
//	Lost      not now.
//
// Each applied message is answered with an Ack. Stream messages of one ID
// continue each other; anything else is a gap, and a new Follow starts over.
// Hash stands in the stream where it was taken.
//
// A hand-off is Prepare, Prepared, Activate. A node of higher priority asks for
// one with TakeBack. A candidate that sees a more advanced state asks for it
// with Fetch, and gets Stream messages, or an Offer to adopt, or Diverged.
//
// Two lanes: everything but Chunk, Stream, Hash and OfferChunk is control and
// overtakes those four. Nothing is sent twice: a link that loses a message is broken.
//
// # Positions and lineages
//
// A position is (epoch, seq). A lineage names the reigns that a state descends
// from, and how far. A state whose position is on another's lineage has nothing
// that the other lacks, and may be replaced by it; any other must be offered
// first. A merge adds the loser's reigns to the winner's lineage, from the seq
// on at which the merge was complete.
//
// # Where each rule lives
//
//	Links: which is kept, namesakes, silence               link.go
//	Refusals, and not activating when most refuse          refuse.go
//	Alive, nonce echo, whom I hold for the active          heartbeat.go
//	Who becomes active: classes, rules 1 to 5              succession.go
//	Following, snapshot, gap, a less advanced state        follow.go
//	Streams, snapshots and states for others               serve.go
//	Acknowledgements, the gate, emptying the ended set     gate.go
//	Hand-off: the active, and what it owes its clients     handoff.go
//	Hand-off: the successor                                successor.go
//	Take-back, its damping, the operator's hand-off        takeback.go
//	Waking up                                              waking.go
//	Two actives: who gives way, a later epoch at a peer    rivals.go
//	Offering a state                                       offer.go
//	Taking an offer: merge, adopt                          merge.go
//	Comparing the state's hash                             hash.go
//	The log that all streams copy from                     log.go
//	Messages and their bytes                               message.go, fields.go, coder.go
//
// # What the owner of the state does
//
// Merging itself, the ended set (the machine says with TrimEnded up to where
// everybody has acknowledged), leases, tokens, parking requests while frozen,
// and holding replies until ReleaseGate. Before it decides requests it asks
// MayServe; where that says no because the last tick is long ago, it feeds Tick first.
package replica
