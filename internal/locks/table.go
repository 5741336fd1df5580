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

	prefetched uint32 // see Prefetch

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

// hear raises the counter to a token that was taken, here or elsewhere.
func (t *Table) hear(token Token) { t.counter = max(t.counter, uint64(token)>>3) }

// Activate begins a reign: the counter rises to the token clock and above
// floor, and the first token, the epoch, is taken for the reign itself. What was
// replicated has no client yet: it counts as disconnected from now on.
func (t *Table) Activate(now Time, floor Token, fx *Effects) (epoch Token) {
	t.hear(floor)
	t.ev = Event{Kind: EventEpoch, Token: t.nextToken(now)}
	epoch = t.ev.Token
	t.commit(now, place{}, fx)
	for cursor := uint32(1); cursor != 0; {
		cursor = t.walk(cursor, func(id uint32, k *entry) bool {
			t.startGraces(now, k)
			// A waiter without a ticket may have kept out those behind it, and
			// was never heard of here.
			t.serve(now, id, now+1, fx)
			return true
		})
	}
	return epoch
}

// startGraces starts the grace of a key's waiters and Bound grants that belong
// to no session.
func (t *Table) startGraces(now Time, k *entry) {
	var alone []uint32
	t.eachHolder(k, func(id uint32, c *claim) bool {
		if c.flags&Bound != 0 && !c.linked && c.grace == Never {
			alone = append(alone, id)
		}
		return true
	})
	for id := k.qhead; id != 0; id = t.claims.at(id).next {
		if c := t.claims.at(id); !c.linked && c.grace == Never {
			alone = append(alone, id)
		}
	}
	for _, id := range alone {
		t.setGrace(id, now.Add(t.cfg.ReattachGrace))
	}
}

// Next says when Advance is needed; Never when nothing is due at all.
func (t *Table) Next() Time { return t.deadlines.next() }

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
