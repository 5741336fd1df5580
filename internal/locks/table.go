package locks

// Table is the lock table. It is not safe for concurrent use: its owner holds
// a mutex around every call.
type Table struct {
	cfg Config

	entries slab[entry]
	claims  slab[claim]
	long    longKeys
	origins origins

	byKey    index // entries
	byTicket index // waiters with a ticket, and such holders of keys that several may hold
	byToken  index // holders of keys that several may hold
	byRef    index // waiters whose session is here

	sessions  []session // by the slot in their number
	deadlines deadlines

	counter  uint64 // n of the highest token taken or heard
	keyBytes int64
	waiters  int
	sum      uint64 // of grants and ticketed waiters, see Sum
	ended    endedSet

	reign  reign
	graces int // claims whose grace runs

	scratch    []uint32 // see holdersOf
	prefetched uint32   // see Prefetch

	ev Event // scratch of the decider: an Event on the stack would escape
}

// New makes an empty table.
func New(cfg Config) *Table {
	return &Table{
		cfg:      cfg,
		entries:  newSlab[entry](),
		claims:   newSlab[claim](),
		long:     newLongKeys(),
		origins:  newOrigins(),
		byKey:    newIndex(),
		byTicket: newIndex(),
		byToken:  newIndex(),
		byRef:    newIndex(),
		ended:    newEndedSet(),
	}
}

func (t *Table) hashKey(key []byte) uint32 { return hashBytes(t.cfg.Seed, key) }

func (t *Table) hashToken(token Token) uint32 { return hashPair(t.cfg.Seed, uint64(token), 0) }

func (t *Table) hashRef(s Session, ref uint64) uint32 { return hashPair(t.cfg.Seed, uint64(s), ref) }

func (t *Table) hashTicket(eid uint32, ticket Ticket) uint32 {
	return hashBytes(t.cfg.Seed+uint64(eid), ticket[:])
}

// clock is the token clock at now, in half-microseconds.
func (t *Table) clock(now Time) uint64 { return t.cfg.ClockAtZero + uint64(now)/500 }

func (t *Table) token(n uint64) Token { return Token(n<<3 | uint64(t.cfg.Rank)) }

// nextToken takes a token.
func (t *Table) nextToken(now Time) Token {
	return t.token(max(t.counter+1, t.clock(now)))
}

// Hear raises the counter to a token that was taken, here or elsewhere.
func (t *Table) Hear(token Token) { t.counter = max(t.counter, uint64(token)>>3) }

// Stats counts what stands in the table.
func (t *Table) Stats() Stats {
	return Stats{
		Keys:     t.entries.n,
		Held:     t.claims.n - t.waiters,
		Waiters:  t.waiters,
		KeyBytes: t.keyBytes,
		Highest:  t.token(t.counter),
	}
}

// keptEffects bounds the replies, events and kilobytes of keys for which an
// Effects keeps its memory: a storm is no reason to keep it for good.
const keptEffects = 1 << 13

// Reset empties fx for the next batch, keeping its memory, Record and Seq.
func (fx *Effects) Reset() {
	if cap(fx.Replies) > keptEffects || cap(fx.Events) > keptEffects || cap(fx.keys) > keptEffects<<10 {
		*fx = Effects{Record: fx.Record, Seq: fx.Seq}
		return
	}
	fx.Replies = fx.Replies[:0]
	clear(fx.Events) // they point to origins
	fx.Events = fx.Events[:0]
	fx.More = false
	fx.keys = fx.keys[:0]
}

// own copies a key into memory that lives until Reset. Where the buffer
// grows, keys handed out before stay in the old one.
func (fx *Effects) own(key []byte) []byte {
	n := len(fx.keys)
	fx.keys = append(fx.keys, key...)
	return fx.keys[n:len(fx.keys):len(fx.keys)]
}

// reply appends an empty reply for the caller to fill.
func (fx *Effects) reply() *Reply {
	fx.Replies = append(fx.Replies, Reply{})
	return &fx.Replies[len(fx.Replies)-1]
}
