package locks

import "fmt"

// Check walks every invariant of the table and says which is broken. It is for
// tests: it costs as much as the table is large.
func (t *Table) Check() error {
	seen := census{t: t, claims: map[uint32]bool{}}
	for cursor := uint32(1); cursor != 0; {
		cursor = t.walk(cursor, func(id uint32, k *entry) bool {
			seen.entry(id, k)
			return true
		})
	}
	seen.deadlines()
	seen.sessions()
	seen.totals()
	return seen.err
}

// census counts what Check has met.
type census struct {
	t                        *Table
	claims                   map[uint32]bool
	keys, waiters            int
	keyBytes                 int64
	timed, ticketed, tokened int
	err                      error
}

func (s *census) fault(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("locks: "+format, args...)
	}
}

func (s *census) entry(id uint32, k *entry) {
	t, key := s.t, s.t.keyOf(k)
	s.keys++
	s.keyBytes += int64(k.keyLen)
	if t.find(key, t.hashKey(key)) != id {
		s.fault("key %q is not found by its hash", key)
	}
	if k.root == 0 && k.qhead == 0 {
		s.fault("key %q is kept though nothing stands on it", key)
	}
	s.holders(id, k)
	s.queue(id, k)
	if k.qhead != 0 && t.fits(k, t.claims.at(k.qhead).flags&Shared) && t.claims.at(k.qhead).session != 0 {
		s.fault("key %q has room for its first waiter", key)
	}
}

func (s *census) holders(id uint32, k *entry) {
	t, n, exclusive := s.t, 0, 0
	t.eachHolder(k, func(cid uint32, c *claim) bool {
		n++
		s.claim(cid, c, id, holding)
		if n > int(k.holders) {
			s.fault("key %q has more holders than it counts (%d)", t.keyOf(k), k.holders)
			return false
		}
		if c.id>>3 > t.counter {
			s.fault("token %d of key %q is above the counter", c.id, t.keyOf(k))
		}
		if c.flags&Shared == 0 && k.slots == 1 {
			exclusive++
		}
		for below := c.child; below != 0; below = t.claims.at(below).next {
			if b := t.claims.at(below); t.endsBefore(b, c) {
				s.fault("holder %d of key %q ends before the one above it", b.id, t.keyOf(k))
			}
		}
		if t.findHolder(id, Token(c.id)) != cid {
			s.fault("token %d of key %q is not found", c.id, t.keyOf(k))
		}
		if k.many(c) {
			s.tokened++
			if !c.ticket.IsZero() {
				s.ticketed++
			}
		}
		return true
	})
	if n != int(k.holders) || k.slots > 1 && n > int(k.slots) || exclusive > 0 && n > 1 {
		s.fault("key %q: %d holders (%d exclusive), counted %d, slots %d", t.keyOf(k), n, exclusive, k.holders, k.slots)
	}
}

func (s *census) queue(id uint32, k *entry) {
	t, n, prev := s.t, 0, uint32(0)
	for cid := k.qhead; cid != 0; cid = t.claims.at(cid).next {
		c := t.claims.at(cid)
		s.claim(cid, c, id, waiting)
		if n++; n > int(k.waiters) || c.prev != prev {
			s.fault("queue of key %q is broken at place %d of %d", t.keyOf(k), n, k.waiters)
			return
		}
		if prev != 0 && int32(c.child-t.claims.at(prev).child) <= 0 {
			s.fault("queue of key %q is out of order at place %d", t.keyOf(k), n)
		}
		prev = cid
	}
	if n != int(k.waiters) || prev != k.qtail {
		s.fault("queue of key %q has %d waiters, counted %d", t.keyOf(k), n, k.waiters)
	}
	s.waiters += n
}

// claim checks what holds for waiters and holders alike.
func (s *census) claim(id uint32, c *claim, eid uint32, want state) {
	t := s.t
	key := t.keyOf(t.entries.at(eid))
	if s.claims[id] {
		s.fault("a claim stands twice, here on key %q", key)
	}
	s.claims[id] = true
	if c.state != want || c.entry != eid {
		s.fault("claim of key %q has state %d and key number %d", key, c.state, c.entry)
	}
	if c.end() != Never {
		s.timed++
		if c.heap == 0 || t.deadlines.slot(c.heap-1).id != id || Time(t.deadlines.slot(c.heap-1).at>>1) != c.end() {
			s.fault("a deadline of key %q is not where it should be", key)
		}
	} else if c.heap != 0 {
		s.fault("a claim of key %q without end has a deadline", key)
	}
	if !c.ticket.IsZero() {
		if t.findTicket(eid, c.ticket) != id {
			s.fault("a ticket of key %q is not found, or stands twice", key)
		}
		if want == waiting {
			s.ticketed++
		}
	}
	if c.linked != (t.session(c.session) != nil && (want == waiting || c.flags&Bound != 0)) && (c.linked || t.here(c.session)) {
		s.fault("a claim of key %q and its session disagree", key)
	}
}

func (s *census) deadlines() {
	h := &s.t.deadlines
	if int(h.n) != s.timed {
		s.fault("%d deadlines for %d claims with one", h.n, s.timed)
	}
	for i := uint32(1); i < h.n; i++ {
		if h.slot(i).before(h.slot((i - 1) / 4)) {
			s.fault("deadline %d is before the one above it", i)
		}
	}
}

func (s *census) sessions() {
	t, pending := s.t, 0
	for i := range t.sessions {
		r := &t.sessions[i]
		waiters, prev := 0, uint32(0)
		for id := r.list; id != 0; id = t.claims.at(id).snext {
			c := t.claims.at(id)
			if c.session != r.id || c.sprev != prev || !s.claims[id] {
				s.fault("list of session %d is broken", r.id)
				return
			}
			if c.state == waiting {
				waiters++
				if !s.foundByRef(id) {
					s.fault("request %d of session %d is not found", c.id, r.id)
				}
			}
			prev = id
		}
		if waiters != int(r.waiters) {
			s.fault("session %d has %d waiters, counted %d", r.id, waiters, r.waiters)
		}
		pending += waiters
	}
	if int(t.byRef.n) != pending {
		s.fault("%d pending requests indexed, %d stand", t.byRef.n, pending)
	}
}

func (s *census) foundByRef(id uint32) bool {
	t, c := s.t, s.t.claims.at(id)
	for i := t.byRef.first(t.hashRef(c.session, c.id)); i != 0; i = t.byRef.next(i) {
		if i == id {
			return true
		}
	}
	return false
}

func (s *census) totals() {
	t := s.t
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"keys", t.entries.n, s.keys},
		{"indexed keys", int(t.byKey.n), s.keys},
		{"claims", t.claims.n, len(s.claims)},
		{"waiters", t.waiters, s.waiters},
		{"key bytes", int(t.keyBytes), int(s.keyBytes)},
		{"indexed tickets", int(t.byTicket.n), s.ticketed},
		{"indexed tokens", int(t.byToken.n), s.tokened},
	} {
		if c.got != c.want {
			s.fault("counted %d %s, found %d", c.got, c.what, c.want)
		}
	}
}
