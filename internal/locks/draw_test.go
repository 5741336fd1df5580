package locks_test

import (
	"strings"
	"time"

	. "holdfast/internal/locks"
)

// drawer makes up the next step. All its choices come from pick, so that a
// seeded generator, rapid and a fuzzer can each make them.
type drawer struct {
	*harness
	p        *profile
	pick     func(n int) int // 0 <= pick(n) < n
	attached []Session       // by slot, 0 = free
	numbered uint64          // generations of sessions so far
	names    [][]byte
	grants   ring[Command] // Key and Token of recent grants
	waits    ring[Command] // Session, Ref, Key and Ticket of recent waiters
}

// ring remembers the last few values.
type ring[T any] struct {
	list [32]T
	n    int
}

func (r *ring[T]) add(v T) {
	r.list[r.n%len(r.list)] = v
	r.n++
}

// some returns one of them, mostly of the newest.
func (r *ring[T]) some(pick func(int) int) (v T, ok bool) {
	if r.n == 0 {
		return v, false
	}
	among := min(r.n, len(r.list))
	if pick(4) != 0 {
		among = min(among, 6)
	}
	return r.list[(r.n-1-pick(among))%len(r.list)], true
}

func newDrawer(p *profile, pick func(int) int, seen *coverage) *drawer {
	d := &drawer{harness: newHarness(p.cfg, seen), p: p, pick: pick, attached: make([]Session, p.sessions)}
	for i := range p.keys {
		d.names = append(d.names, keyName(i))
	}
	d.log = d.remember
	return d
}

// keyName gives short and long keys, and such as differ in little.
func keyName(i int) []byte {
	name := string(rune('a'+i%26)) + strings.Repeat("/", i/26)
	switch i % 13 {
	case 5:
		name += strings.Repeat("k", 20)
	case 7:
		name += strings.Repeat("k", 200)
	case 11:
		name += strings.Repeat("k", MaxKeyLength-len(name))
	}
	return []byte(name)
}

// remember notes what later commands can name.
func (d *drawer) remember(fx *Effects) {
	for i := range fx.Replies {
		r := &fx.Replies[i]
		switch r.Code {
		case Granted:
			d.grants.add(Command{Session: r.To, Key: d.known(r.Key), Token: r.Token, Ticket: r.Ticket})
		case Queued:
			d.waits.add(Command{Session: r.To, Ref: r.Ref, Key: d.known(r.Key), Ticket: r.Ticket})
		}
	}
}

// known returns the lasting copy of a key.
func (d *drawer) known(key []byte) []byte {
	for _, name := range d.names {
		if string(name) == string(key) {
			return name
		}
	}
	return nil
}

func (d *drawer) chance(percent int) bool { return percent > 0 && d.pick(100) < percent }

func one[T any](d *drawer, list []T) T { return list[d.pick(len(list))] }

// step draws a step and takes it.
func (d *drawer) step() error {
	d.now = d.now.Add(one(d, d.p.steps))
	if d.now < d.model.calm && d.pick(40) == 0 {
		d.now = d.now.Add(2 * time.Second)
	}
	if d.walking && d.chance(30) {
		return d.rouse(1 + d.pick(3))
	}
	switch n := d.pick(d.p.restart); n {
	case 1:
		d.follower.restart(d.model.cfg, time.Duration(d.pick(1000))*ms)
	case 2:
		// A snapshot tells of what is overdue only that it is.
		if first := d.model.first(); !d.follower.behind && (first == nil || first.end() > d.now) {
			clear(d.attached)
			return d.promote()
		}
	case 3:
		if err := d.stepDown(); err != nil {
			return err
		}
		d.now = d.now.Add(one(d, d.p.steps))
		return d.activate()
	case 4:
		return d.activate()
	}
	slot := d.pick(len(d.attached))
	s := d.attached[slot]
	switch {
	case s == 0:
		return d.attach(slot)
	case d.chance(d.p.sweep):
		return d.advance(one(d, d.p.most))
	case d.chance(d.p.detach):
		d.attached[slot] = 0
		return d.do(Command{Op: OpDetach, Session: s})
	}
	return d.do(d.command(s))
}

func (d *drawer) attach(slot int) error {
	d.numbered++
	s := Session(d.numbered<<32 | uint64(slot))
	d.attached[slot] = s
	return d.do(Command{Op: OpAttach, Session: s, Origin: origins[slot%len(origins)]})
}

// origins are where sessions come from: two identities, and nobody.
var origins = []*Origin{
	{Owner: "ann/1", Remote: "192.0.2.1:4000", Transport: "native", Identity: "ann"},
	{Owner: "ann/2", Remote: "192.0.2.2:4000", Transport: "http", Identity: "ann"},
	{Owner: "bob/1", Remote: "192.0.2.3:4000", Transport: "ws", Identity: "bob"},
	{},
}

// command draws what session s asks for.
func (d *drawer) command(s Session) Command {
	c := Command{Session: s, Ref: uint64(d.pick(d.p.refs)), Key: one(d, d.names)}
	switch n := d.pick(100); {
	case n < 50:
		d.acquire(&c)
	case n < 75:
		c.Op = OpRelease
		d.nameGrant(&c)
	case n < 83:
		c.Op = OpExtend
		d.nameGrant(&c)
		c.Lease = d.lease()
		if d.chance(30) {
			c.Flags = Stay
		}
	case n < 88:
		c.Op = OpCancel
		if w, ok := d.waits.some(d.pick); ok {
			c.Ref = w.Ref
			c.Session = d.here(w.Session, s)
		}
		c.Key = nil
	case n < 91:
		c.Op = OpCancelTicket
		d.nameTicket(&c)
	case n < 94:
		c.Op = OpRemoveWaiter
		d.nameTicket(&c)
	case n < 96:
		c.Op = OpForce
		d.nameGrant(&c)
	default:
		c.Op = OpUndelivered
		d.nameGrant(&c)
		if g, ok := d.grants.some(d.pick); ok && d.chance(80) {
			c.Session, c.Key, c.Token = g.Session, g.Key, g.Token // gone by now, perhaps
		}
	}
	return c
}

// here returns s if it is attached, else other.
func (d *drawer) here(s, other Session) Session {
	if d.attached[uint32(s)] == s {
		return s
	}
	return other
}

// nameGrant lets c name a grant that was made lately, mostly.
func (d *drawer) nameGrant(c *Command) {
	g, ok := d.grants.some(d.pick)
	if !ok {
		return
	}
	c.Key, c.Token = g.Key, g.Token
	switch d.pick(20) {
	case 0:
		c.Token += 8
	case 1:
		c.Key = one(d, d.names)
	}
}

func (d *drawer) nameTicket(c *Command) {
	remembered := &d.waits
	if d.chance(30) {
		remembered = &d.grants
	}
	if w, ok := remembered.some(d.pick); ok {
		c.Key, c.Ticket = w.Key, w.Ticket
	}
	if d.chance(30) {
		c.Origin = one(d, origins)
	}
}

func (d *drawer) lease() time.Duration {
	if d.chance(d.p.bad) {
		return one(d, []time.Duration{-1, d.p.cfg.MaxLease + ms, Never.Sub(0)})
	}
	return one(d, d.p.leases)
}

func (d *drawer) acquire(c *Command) {
	c.Op, c.Lease, c.Wait, c.Slots = OpAcquire, d.lease(), one(d, d.p.waits), one(d, d.p.slots)
	for _, f := range []struct {
		flag    Flags
		percent int
	}{{Try, d.p.try}, {Shared, d.p.shared}, {Bound, d.p.bound}, {Contended, d.p.push}} {
		if d.chance(f.percent) {
			c.Flags |= f.flag
		}
	}
	if c.Flags&Shared != 0 && !d.chance(d.p.bad) {
		c.Slots = 0
	}
	if d.chance(d.p.ticketed) {
		d.ticket(c)
	}
	if d.chance(10) {
		c.Origin = one(d, origins)
	}
	if d.chance(2) {
		c.Wait = one(d, []time.Duration{1 << 61, 1 << 62, 1<<63 - 1}) // decades
	}
	if d.chance(d.p.bad) {
		switch d.pick(3) {
		case 0:
			c.Key = [][]byte{nil, {}, make([]byte, MaxKeyLength+1)}[d.pick(3)]
		case 1:
			c.Wait = -1
		default:
			c.Flags |= Retry
			c.Ticket = Ticket{}
		}
	}
}

// ticket gives an acquire a ticket: one of those in use, or that of an attempt
// that was made lately.
func (d *drawer) ticket(c *Command) {
	if d.p.tickets == 0 {
		return
	}
	n := 1 + d.pick(d.p.tickets)
	c.Ticket = Ticket{byte(n >> 8), byte(n), 15: 1}
	if !d.chance(d.p.retry) {
		return
	}
	c.Flags |= Retry
	remembered := &d.waits
	if d.chance(40) {
		remembered = &d.grants
	}
	if w, ok := remembered.some(d.pick); ok && !w.Ticket.IsZero() {
		c.Key, c.Ticket = w.Key, w.Ticket
	}
}
