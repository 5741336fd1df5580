package replica

// Why is the reason of a change of role.
type Why uint8

const (
	WhyAlone       Why = iota + 1 // a cluster of one
	WhyStart                      // nobody was active when this node started
	WhyLoss                       // the active was lost
	WhyStop                       // the active stops and hands over
	WhyTakeBack                   // a node of higher priority takes over
	WhyOperator                   // an operator asked for it
	WhyTwoActives                 // two were active, and this one gave way
	WhyMerge                      // a new reign: another state was merged
	WhyLaterEpoch                 // a new reign: a peer holds a state of a later epoch
	WhyOfferBroken                // a new reign: it is unknown whether the state that was offered was merged
	WhySynced                     // in step with the active
	WhySnapshot                   // a snapshot began to replace the state
	numWhys
)

var whyNames = [numWhys]string{
	WhyAlone: "alone", WhyStart: "start", WhyLoss: "loss of the active", WhyStop: "hand-off, stopping",
	WhyTakeBack: "hand-off, take-back", WhyOperator: "hand-off, operator", WhyTwoActives: "two actives",
	WhyMerge: "merge", WhyLaterEpoch: "later epoch at a peer", WhyOfferBroken: "offer broken off",
	WhySynced: "in step", WhySnapshot: "snapshot began",
}

func (w Why) String() string {
	if w == 0 || w >= numWhys {
		return "unknown"
	}
	return whyNames[w]
}

// HashUse says what a hash of the state is wanted for.
type HashUse uint8

const (
	HashPeriodic HashUse = iota + 1 // the active's, to be sent to its followers
	HashCompare                     // a follower's, against the active's
	HashPrepare                     // the active's, before a hand-off
	HashPrepared                    // the successor's
)

// Refusal says why a link is refused.
type Refusal uint8

const (
	RefusedSelf      Refusal = iota + 1 // the other end is this process
	RefusedDuplicate                    // a node of that name is there already
	RefusedUnlisted                     // not in the peers list
	RefusedRank                         // a shared node has another rank
	RefusedClock                        // the clocks differ too much
	RefusedVersion                      // the versions can't work together
	RefusedGarbage                      // not this protocol
	RefusedEntry                        // the handshake: cluster secret, clock or address
	numRefusals
)

var refusalNames = [numRefusals]string{
	RefusedSelf: "self", RefusedDuplicate: "duplicate name", RefusedUnlisted: "not in the peers list",
	RefusedRank: "other order of the peers list", RefusedClock: "clocks differ", RefusedVersion: "versions differ",
	RefusedGarbage: "garbage", RefusedEntry: "handshake",
}

func (r Refusal) String() string {
	if r == 0 || r >= numRefusals {
		return "unknown"
	}
	return refusalNames[r]
}

// Fact is something that happened and is neither a change of role nor a request to the owner.
type Fact uint8

const (
	FactPeerUp       Fact = iota + 1 // a peer is alive
	FactPeerDown                     // a peer is not alive any more
	FactRefused                      // a link was refused, here or there: Text
	FactWaking                       // the process was paused; Text says for how long
	FactAwake                        // and may act again
	FactBehind                       // became active with a state that is known to be behind Peer's
	FactGap                          // a stream had a gap, a repeat or a foreign epoch; it is synced anew
	FactStreamLost                   // a follower fell out of the log
	FactHashDiffers                  // the state's hash differs from the active's; it is mended by a snapshot
	FactHandoff                      // a hand-off to Peer begins
	FactHandoffEnded                 // it did not come about: Text
	FactPrepareEnded                 // asked to prepare, never told to activate, or too late
	FactTwoActives                   // Peer is active too
	FactOtherActive                  // Peer is said to be active too, by a third node
	FactOffer                        // offers its state to Peer
	FactOfferTaken                   // merged the state that Peer offered
	FactOfferEnded                   // an offer did not come about: Text
	FactBarred                       // too many peers refuse this node: it does not become active
	FactGateAlone                    // ack: no synced standby; replies go on alone
	FactTakeBack                     // asks the active to hand over
	numFacts
)

var factNames = [numFacts]string{
	FactPeerUp: "peer up", FactPeerDown: "peer down", FactRefused: "refused", FactWaking: "waking", FactAwake: "awake",
	FactBehind: "went on behind", FactGap: "gap", FactStreamLost: "stream lost", FactHashDiffers: "hash differs",
	FactHandoff: "hand-off begins", FactHandoffEnded: "hand-off ended", FactPrepareEnded: "prepare ended",
	FactTwoActives: "two actives", FactOtherActive: "another active beyond reach", FactOffer: "offer begins",
	FactOfferTaken: "offer taken", FactOfferEnded: "offer ended", FactBarred: "barred", FactGateAlone: "acknowledging alone",
	FactTakeBack: "asks to take over",
}

func (f Fact) String() string {
	if f == 0 || f >= numFacts {
		return "unknown"
	}
	return factNames[f]
}
