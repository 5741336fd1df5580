package replica

// Input is what happened. Byte slices are borrowed until Step returns.
//
// Activated, StateHash, SnapshotChunk and OfferMerged answer an action: the
// owner feeds them while it carries out the actions, before any other input.
type Input interface{ input() }

type (
	// Tick is fed at least every half heartbeat. One that comes late says that
	// the process was paused.
	Tick struct{}

	// LinkUp says that a connection stands and both sides have proved the secret.
	LinkUp struct {
		Link    LinkID
		Dialled bool // by this node
	}

	// LinkDown says that a connection is gone, whoever closed it.
	LinkDown struct{ Link LinkID }

	// DialFailed says that a peer could not be reached.
	DialFailed struct {
		Peer     Rank
		Refused  bool // nobody listens there: the process is gone, unlike with a silent address
		Rejected bool // the peer is there and lets this node not in: its secret, its clock or an address is wrong
	}

	// Received is one message of a peer.
	Received struct {
		Link LinkID
		Data []byte
	}

	// Pull asks for the next bulk message of a link: its lane is empty. It is fed
	// after a Wake, and again after each message that it led to.
	Pull struct {
		Link LinkID
		Max  int // bytes of events that fit
	}

	// Events are what the active's state went through, as a run (AppendEvent).
	Events struct {
		Run     []byte
		Highest Token // the highest token taken or heard
	}

	// Activated answers BecomeActive and NewReign: the first token taken, and
	// the event that says so.
	Activated struct {
		Epoch Epoch
		Run   []byte
	}

	// StateHash answers HashState.
	StateHash struct {
		For  HashUse
		Hash uint64
	}

	// SnapshotChunk answers TakeSnapshot.
	SnapshotChunk struct {
		Link LinkID
		Next uint64 // cursor to go on with; 0 = that was all
		Run  []byte // the first begins with an event that forgets everything
	}

	// OfferMerged answers MergeOffer; the events that it led to were fed before.
	OfferMerged struct {
		Peer Rank
		ID   uint64
	}

	// StopRequested says that the process is asked to end.
	StopRequested struct{}

	// HandoffRequested is an operator's wish.
	HandoffRequested struct{ To Rank } // Nobody: whoever is next
)

func (Tick) input()             {}
func (LinkUp) input()           {}
func (LinkDown) input()         {}
func (DialFailed) input()       {}
func (Received) input()         {}
func (Pull) input()             {}
func (Events) input()           {}
func (Activated) input()        {}
func (StateHash) input()        {}
func (SnapshotChunk) input()    {}
func (OfferMerged) input()      {}
func (StopRequested) input()    {}
func (HandoffRequested) input() {}
