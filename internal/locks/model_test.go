package locks_test

import (
	"bytes"
	"time"

	. "holdfast/internal/locks"
)

// model is the lock table written down as plainly as it can be: slices, linear
// scans, no index and nothing kept that could be counted. It was derived from
// the contract, not from Table, and is the second opinion on every answer.
type model struct {
	cfg      Config
	began    Time   // the reign
	calm     Time   // nothing expires before
	last     uint64 // n of the last token
	asks     uint64 // numbers what sessions ask for
	sets     uint64 // numbers the deadlines as they are set
	sessions map[Session]Origin
	keys     map[string]*mkey
	replies  []Reply
	events   []Event

	// What the table did in this step, for the one thing that the model can't
	// know: after a promotion, in which order a follower had set the deadlines.
	hint []Event
}

// mkey is one key with what stands on it.
type mkey struct {
	name   []byte
	slots  uint16
	holds  []*claim // in the order of their tokens
	queue  []*claim // in the order of their arrival
	roused bool     // what a promotion left to do is done
}

// claim is one waiter or one holder.
type claim struct {
	key     *mkey
	session Session
	ref     uint64
	origin  Origin
	ticket  Ticket
	flags   Flags
	lease   time.Duration
	token   Token // 0 while it waits
	since   Time
	limit   Time   // end of the wait or the lease
	grace   Time   // waiter: when it leaves for want of a session; holder: when it is given up as undelivered
	bound   Time   // Bound holder without a session: when it ends
	asked   uint64 // when its session asked for it, or got it
	set     uint64 // when its end was set; 0 = on a follower, who knows when
	later   bool   // a promotion gives it another end, which is set when its key is roused;
	until   Time   // then the end that is set until then
}

func newModel(cfg Config) *model {
	return &model{cfg: cfg, sessions: map[Session]Origin{}, keys: map[string]*mkey{}}
}

// end says when the claim ends by itself.
func (c *claim) end() Time { return min(c.limit, c.grace, c.bound) }

// change alters a claim; where that moves its end, the new one is set now, after
// all that were set before.
func (m *model) change(c *claim, alter func()) {
	before := c.end()
	alter()
	if c.end() != before {
		m.sets++
		c.set = m.sets
	}
}

func (m *model) reset() { m.replies, m.events = m.replies[:0], m.events[:0] }

func (m *model) event(e Event) { m.events = append(m.events, e) }

// ask numbers c as the last that its session asked for.
func (m *model) ask(c *claim) {
	m.asks++
	c.asked = m.asks
}

// tell sends r unless its session is gone.
func (m *model) tell(r Reply) {
	if m.connected(r.To) != 0 {
		m.replies = append(m.replies, r)
	}
}

func (m *model) answer(c *Command, code Code) {
	m.answerWith(c, Reply{Code: code})
}

// answerWith is an answer that says more than its code.
func (m *model) answerWith(c *Command, r Reply) {
	r.To, r.Ref, r.Op, r.Key, r.Ticket = c.Session, c.Ref, c.Op, bytes.Clone(c.Key), c.Ticket
	m.tell(r)
}

// clock is the token clock at now.
func (m *model) clock(now Time) uint64 { return m.cfg.ClockAtZero + uint64(now)/500 }

func (m *model) nextToken(now Time) Token {
	m.last = max(m.last+1, m.clock(now))
	return Token(8*m.last + uint64(m.cfg.Rank))
}

func (m *model) activate(now Time, floor Token) Token {
	m.last = max(m.last, uint64(floor)/8)
	epoch := m.nextToken(now)
	m.event(Event{Kind: EventEpoch, Token: epoch})
	return epoch
}

// do decides one command.
func (m *model) do(now Time, c *Command) {
	switch c.Op {
	case OpAttach:
		m.sessions[c.Session] = *c.Origin
	case OpDetach:
		m.detach(now, c.Session)
	case OpCancel:
		m.cancel(now, c)
	default:
		if code := m.badArgument(c); code != 0 {
			m.answer(c, code)
			return
		}
		k := m.key(c.Key)
		m.settle(now, k)
		k = m.key(c.Key) // settling may have let it go
		m.onKey(now, k, c)
		m.forget(k)
	}
}

// badArgument finds what is wrong whatever stands on the key.
func (m *model) badArgument(c *Command) Code {
	acquire := c.Op == OpAcquire
	switch {
	case acquire && (len(c.Key) == 0 || len(c.Key) > MaxKeyLength):
		return BadKey
	case (acquire || c.Op == OpExtend) && (c.Lease < 0 || c.Lease > m.cfg.MaxLease):
		return BadLease
	case acquire && c.Wait < 0:
		return BadWait
	case acquire && c.Flags&Shared != 0 && c.Slots > 1:
		return BadSlots
	case acquire && c.Flags&Retry != 0 && c.Ticket.IsZero():
		return BadRetry
	}
	return 0
}

func (m *model) onKey(now Time, k *mkey, c *Command) {
	switch c.Op {
	case OpAcquire:
		m.acquire(now, k, c)
	case OpRelease:
		m.release(now, k, c)
	case OpExtend:
		m.extend(now, k, c)
	case OpCancelTicket:
		m.cancelTicket(now, k, c)
	case OpUndelivered:
		m.undelivered(now, k, c)
	case OpForce:
		m.force(now, k, c)
	case OpRemoveWaiter:
		m.removeWaiter(now, k, c)
	}
}

// key finds a key, or makes one on which nothing stands yet.
func (m *model) key(name []byte) *mkey {
	if k := m.keys[string(name)]; k != nil {
		return k
	}
	k := &mkey{name: bytes.Clone(name), roused: true}
	m.keys[string(name)] = k
	return k
}

// forget drops a key on which nothing stands.
func (m *model) forget(k *mkey) {
	if len(k.holds)+len(k.queue) == 0 {
		delete(m.keys, string(k.name))
	}
}

func (k *mkey) holder(t Token) *claim {
	for _, h := range k.holds {
		if h.token == t {
			return h
		}
	}
	return nil
}

func withTicket(list []*claim, t Ticket) *claim {
	for _, c := range list {
		if c.ticket == t && !t.IsZero() {
			return c
		}
	}
	return nil
}
