package replica

import (
	"fmt"
	"time"
)

// Kind names a message on the wire: its first byte.
type Kind uint8

const (
	KindHello Kind = iota + 1
	KindRefuse
	KindHeartbeat
	KindFollow
	KindResume
	KindDiverged
	KindChunk
	KindStream
	KindAck
	KindLost
	KindHash
	KindPrepare
	KindPrepared
	KindActivate
	KindTakeBack
	KindFetch
	KindOffer
	KindOfferChunk
	KindMerged
	KindOfferRefused
	numKinds
)

// Bounds of what a message may hold.
const (
	maxNameBytes    = 255
	maxAddressBytes = 512
	maxAddresses    = 8
	maxLimitBytes   = 256
	maxTextBytes    = 1024
	maxTakeBacks    = 8
)

// Message is what one node tells another. See doc.go for the conversation.
type Message interface {
	Kind() Kind
	fields(c *coder)
}

// Hello is the first message on a link, from both sides.
type Hello struct {
	Name        string
	Rank        Rank
	Incarnation Incarnation
	Major       uint16
	Minor       uint16
	Names       []string      // the peers list
	Wall        int64         // its clock, milliseconds since 1970
	Uptime      time.Duration // since its process started
	Software    string
	Native      string
	HTTP        []string
	Limits      []byte
	Position    Position
	Lineage     Lineage
}

// Refuse says why the link is closed.
type Refuse struct {
	From Rank
	Code Refusal
	Text string
}

// Heartbeat says what its sender is and sees.
type Heartbeat struct {
	Nonce        uint64 // counts this sender's heartbeats to this peer
	Echo         uint64 // the highest nonce heard on this link
	Ask          bool   // answer at once
	Role         Role
	Stopping     bool
	Complete     bool // its state is whole
	Synced       bool // and follows the active without a gap
	Yields       bool // active, but woke up and wins over nobody
	Frozen       bool
	Barred       bool // may not become active: too many peers refuse it
	Waking       bool
	Position     Position
	Highest      Token
	Active       Rank // whom it holds for the active
	ActiveEpoch  Epoch
	ActiveAge    time.Duration // since it heard it directly
	Hears        ranks
	TakeBacksOff bool            // of the active: an operator handed over
	TakeBacks    []time.Duration // of the active: ages of the take-backs that count, oldest first
}

// Follow asks the active for its stream from Position on.
type Follow struct {
	ID       uint64 // names the stream; later ones of a sender are higher
	Position Position
	Lineage  Lineage
	Whole    bool // the state at Position is complete
	Anew     bool // the state is broken: a snapshot, please
}

// Resume answers Follow: the stream goes on from the position asked.
type Resume struct{ ID uint64 }

// Diverged answers Follow and Fetch: that state must be offered first.
type Diverged struct{ ID uint64 }

// Chunk is a piece of a snapshot, taken at Position: the answer to a Follow
// that the log cannot serve. The first replaces what the follower had.
type Chunk struct {
	ID       uint64
	Position Position
	First    bool
	Last     bool
	Lineage  Lineage // First: of the state
	Highest  Token
	Events   []byte
}

// Stream carries events of one reign.
type Stream struct {
	ID      uint64
	Epoch   Epoch
	First   Seq
	Prev    Position // First is 1: what the reign followed
	Lineage Lineage  // First is 1: of the reign
	Highest Token
	Events  []byte
}

// Ack says how far a follower has come.
type Ack struct {
	ID       uint64
	Position Position
}

// Lost says that a stream has ended: its events are not in the log any more,
// or its sender is not what the follower took it for.
type Lost struct{ ID uint64 }

// Hash is the hash of the active's state at Position, in the stream.
type Hash struct {
	ID       uint64
	Position Position
	Hash     uint64
}

// Prepare asks a standby whether it can take over.
type Prepare struct {
	ID       uint64 // names the try
	Position Position
	Highest  Token
	Hash     uint64
}

// Prepared answers Prepare. OK is false where the states differ.
type Prepared struct {
	ID uint64
	OK bool
}

// Activate makes its receiver the active.
type Activate struct {
	ID           uint64 // of Prepare
	Position     Position
	Highest      Token
	Why          Why
	TakeBacksOff bool
	OffFor       Incarnation     // TakeBacksOff: holds until that node restarts
	TakeBacks    []time.Duration // ages
}

// TakeBack asks the active to hand over to its sender.
type TakeBack struct{}

// Fetch asks a node that is not active for what the sender lacks: the events
// from Position on, or its state.
type Fetch struct {
	ID       uint64
	Position Position
	Lineage  Lineage
	Whole    bool
}

// Offer begins the transfer of a state that stands still: to be merged by the
// active, or, as the answer to a Fetch of that ID, to be adopted.
type Offer struct {
	ID       uint64
	Adopt    bool
	Active   bool // its sender is active, and frozen
	Whole    bool
	Position Position
	Lineage  Lineage
	Highest  Token
}

// OfferChunk is a piece of an offered state.
type OfferChunk struct {
	ID     uint64
	Last   bool
	Events []byte
}

// Merged answers an offer: all that it said is in the active's state.
type Merged struct{ ID uint64 }

// OfferRefused answers an offer that is not taken now.
type OfferRefused struct{ ID uint64 }

func (*Hello) Kind() Kind        { return KindHello }
func (*Refuse) Kind() Kind       { return KindRefuse }
func (*Heartbeat) Kind() Kind    { return KindHeartbeat }
func (*Follow) Kind() Kind       { return KindFollow }
func (*Resume) Kind() Kind       { return KindResume }
func (*Diverged) Kind() Kind     { return KindDiverged }
func (*Chunk) Kind() Kind        { return KindChunk }
func (*Stream) Kind() Kind       { return KindStream }
func (*Ack) Kind() Kind          { return KindAck }
func (*Lost) Kind() Kind         { return KindLost }
func (*Hash) Kind() Kind         { return KindHash }
func (*Prepare) Kind() Kind      { return KindPrepare }
func (*Prepared) Kind() Kind     { return KindPrepared }
func (*Activate) Kind() Kind     { return KindActivate }
func (*TakeBack) Kind() Kind     { return KindTakeBack }
func (*Fetch) Kind() Kind        { return KindFetch }
func (*Offer) Kind() Kind        { return KindOffer }
func (*OfferChunk) Kind() Kind   { return KindOfferChunk }
func (*Merged) Kind() Kind       { return KindMerged }
func (*OfferRefused) Kind() Kind { return KindOfferRefused }

// newMessage makes an empty message of a kind; nil for one that is unknown.
func newMessage(k Kind) Message {
	if k == 0 || k >= numKinds {
		return nil
	}
	return [numKinds]func() Message{
		KindHello:        func() Message { return new(Hello) },
		KindRefuse:       func() Message { return new(Refuse) },
		KindHeartbeat:    func() Message { return new(Heartbeat) },
		KindFollow:       func() Message { return new(Follow) },
		KindResume:       func() Message { return new(Resume) },
		KindDiverged:     func() Message { return new(Diverged) },
		KindChunk:        func() Message { return new(Chunk) },
		KindStream:       func() Message { return new(Stream) },
		KindAck:          func() Message { return new(Ack) },
		KindLost:         func() Message { return new(Lost) },
		KindHash:         func() Message { return new(Hash) },
		KindPrepare:      func() Message { return new(Prepare) },
		KindPrepared:     func() Message { return new(Prepared) },
		KindActivate:     func() Message { return new(Activate) },
		KindTakeBack:     func() Message { return new(TakeBack) },
		KindFetch:        func() Message { return new(Fetch) },
		KindOffer:        func() Message { return new(Offer) },
		KindOfferChunk:   func() Message { return new(OfferChunk) },
		KindMerged:       func() Message { return new(Merged) },
		KindOfferRefused: func() Message { return new(OfferRefused) },
	}[k]()
}

// AppendMessage appends the encoding of m.
func AppendMessage(dst []byte, m Message) []byte {
	c := coder{buf: append(dst, byte(m.Kind()))}
	m.fields(&c)
	if c.err != nil {
		panic(fmt.Sprintf("replica: encode %T: %v", m, c.err))
	}
	return c.buf
}

// DecodeMessage reads one message. Bytes after the known fields are ignored,
// and a message of an unknown kind is nil: a later version may send both.
// Events and limits point into b.
func DecodeMessage(b []byte) (Message, error) {
	if len(b) == 0 {
		return nil, errShort
	}
	m := newMessage(Kind(b[0]))
	if m == nil {
		return nil, nil
	}
	c := coder{buf: b[1:], reading: true}
	m.fields(&c)
	if c.err != nil {
		return nil, fmt.Errorf("peer message of kind %d: %w", b[0], c.err)
	}
	return m, nil
}
