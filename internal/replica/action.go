package replica

// Action is what the owner of the machine has to do, in the order given.
type Action interface{ action() }

// Lane orders what is sent on one link: control overtakes bulk, neither
// overtakes itself, and a bulk message never overtakes control that was sent before it.
type Lane uint8

const (
	Control Lane = iota + 1
	Bulk
)

type (
	// Send sends a message. It may be encoded until the Actions' Reset.
	Send struct {
		Link LinkID
		Lane Lane
		Msg  Message
	}

	// Wake says that Pull would have something for this link.
	Wake struct{ Link LinkID }

	// CloseLink ends a connection once what was sent on it is out. No LinkDown need follow.
	CloseLink struct {
		Link LinkID
		Why  string
	}

	// Redial asks for a dial now, whatever the backoff says: a refused one tells at once that the peer is dead.
	Redial struct{ Peer Rank }

	// BecomeActive makes the state the active one: raise the token counter to
	// the clock and above Heard (and above the state's own highest) plus Gap,
	// take the first token, answer with Activated. Nothing is granted while frozen.
	BecomeActive struct {
		Heard Token
		Gap   Token
	}

	// NewReign is BecomeActive for a node that is active already.
	NewReign struct {
		Heard Token
		Gap   Token
	}

	// BecomeStandby ends the reign: nothing is granted any more. What is parked
	// stays so until Moved; so does what the gate still holds, for its events
	// may be known to nobody.
	BecomeStandby struct{}

	// Moved answers M to everything parked, pending and queued.
	Moved struct{ To Rank } // Nobody: no active is known

	// Freeze parks every request; the state must not change until Unfreeze, but by merges.
	Freeze struct{}

	// Unfreeze serves again, what is parked first.
	Unfreeze struct{}

	// HearToken raises the active's token counter to a token that a peer has.
	HearToken struct{ Token Token }

	// Apply folds a run of events of another node into the state. The bytes are borrowed from the input.
	Apply struct{ Run []byte }

	// TakeSnapshot asks for a piece of the state, from a cursor on; 0 = from the start. Answer with SnapshotChunk.
	TakeSnapshot struct {
		Link   LinkID
		Cursor uint64
		Offer  bool // with the ended set as offers need it
	}

	// StashOffer keeps a piece of an offered state aside. The bytes are borrowed from the input.
	StashOffer struct {
		Peer Rank
		ID   uint64
		Run  []byte
	}

	// MergeOffer merges a stashed state into this one: feed the events, then OfferMerged.
	MergeOffer struct {
		Peer Rank
		ID   uint64
	}

	// AdoptOffer replaces this state by a stashed one.
	AdoptOffer struct {
		Peer Rank
		ID   uint64
	}

	// DropOffer forgets a stashed state.
	DropOffer struct {
		Peer Rank
		ID   uint64
	}

	// HashState asks for the state's hash. Answer with StateHash.
	HashState struct{ For HashUse }

	// ReleaseGate lets the replies of events up to Position go. It is said only with Config.Ack.
	ReleaseGate struct{ Position Position }

	// TrimEnded says that every listed peer has the state at Position: what ended before need not be kept in the ended set.
	TrimEnded struct{ Position Position }

	// RoleChanged is one line in the log, and a metric.
	RoleChanged struct {
		From, To Role
		Position Position
		Why      Why
	}

	// Note is any other fact worth a line or a count.
	Note struct {
		Fact     Fact
		Peer     Rank
		Position Position
		Text     string
	}

	// PeerKnown tells what a peer said of itself.
	PeerKnown struct {
		Peer  Rank
		Hello *Hello
	}

	// Exit ends the process: at once where Moved came before, with outputs flushed.
	Exit struct {
		Fault bool // the exit code is not 0
		Why   string
	}
)

func (Send) action()          {}
func (Wake) action()          {}
func (CloseLink) action()     {}
func (Redial) action()        {}
func (BecomeActive) action()  {}
func (NewReign) action()      {}
func (BecomeStandby) action() {}
func (Moved) action()         {}
func (Freeze) action()        {}
func (Unfreeze) action()      {}
func (HearToken) action()     {}
func (Apply) action()         {}
func (TakeSnapshot) action()  {}
func (StashOffer) action()    {}
func (MergeOffer) action()    {}
func (AdoptOffer) action()    {}
func (DropOffer) action()     {}
func (HashState) action()     {}
func (ReleaseGate) action()   {}
func (TrimEnded) action()     {}
func (RoleChanged) action()   {}
func (Note) action()          {}
func (PeerKnown) action()     {}
func (Exit) action()          {}

// Actions collects what one Step asks for. The caller owns it, carries it out, and calls Reset.
type Actions struct {
	List []Action
	buf  []byte // what the events of sent messages point into
}

// Reset empties a for the next Step, keeping its memory.
func (a *Actions) Reset() {
	clear(a.List)
	a.List = a.List[:0]
	a.buf = a.buf[:0]
}

func (a *Actions) do(x Action) { a.List = append(a.List, x) }
