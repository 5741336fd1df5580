package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// kind is how the clients use a key. All that stand on one key must agree.
type kind struct {
	shared int // one of so many acquires is shared; 0: none is
	slots  uint16
	flags  locks.Flags
	lease  time.Duration
	wait   time.Duration
}

// long is a lease that outlives every hold. A grant that its client never
// learned of, as on one side of a partition, ends by it.
const long = 40 * time.Second

// kinds are the keys' uses, by the key's number.
var kinds = [...]kind{
	{lease: long},
	{lease: long},
	{lease: long, shared: 2},
	{lease: long, slots: 2},
	{lease: 3 * time.Second, wait: 2 * time.Second},
	{lease: long, flags: locks.Bound | locks.Contended},
}

func keyName(i int) string { return fmt.Sprintf("k%d", i) }

// client takes keys and gives them back, and does not give up: it asks again
// with the same ticket, elsewhere, until it has an answer.
type client struct {
	h     *history
	name  string
	round uint64
	node  int
	conns map[*process]*conn

	key    int
	ticket locks.Ticket
	flags  locks.Flags
	token  locks.Token
	tries  int
	hears  int
	busy   bool   // with a round: it has not given back yet what it wanted
	try    uint64 // the request whose answer counts; 0: none
}

// conn is a client's connection to one process.
type conn struct {
	c    *client
	p    *process
	boot uint64
	sess *node.Session
	gone bool
}

// Push takes a reply, under the node's mutex, and sends it on its way.
func (x *conn) Push(r *locks.Reply) {
	if r.Op == 0 || r.Code == locks.Queued {
		return
	}
	h, own := x.c.h, *r
	own.Key = append([]byte(nil), r.Key...)
	h.c.answer(x.p, &own)
	h.w.after(time.Millisecond, func() {
		if x.gone || !x.p.running(x.boot) {
			return
		}
		switch c := x.c; {
		case c.try == own.Ref:
			c.heard(&own)
		case own.Code == locks.Granted && own.Ticket == c.ticket && c.token == 0: // late, but still wanted
			c.heard(&own)
		case own.Code == locks.Granted && own.Token != c.token:
			c.giveUp(x, &own)
		}
	})
}

func (x *conn) Flush() {}

// connect returns the client's connection to a process.
func (c *client) connect(p *process) *conn {
	if x := c.conns[p]; x != nil && p.running(x.boot) && !x.gone {
		return x
	}
	x := &conn{c: c, p: p, boot: p.boot}
	x.sess = p.n.Open(locks.Origin{Owner: c.name, Remote: "10.0.0.1:1", Transport: "native"}, x)
	c.conns[p] = x
	return x
}

// drop breaks a connection.
func (c *client) drop(p *process) {
	if x := c.conns[p]; x != nil && !x.gone && p.running(x.boot) && !p.paused {
		x.gone = true
		x.sess.Abandon()
		p.looked()
	}
}

func (c *client) think() {
	c.busy = false
	c.h.w.after(time.Duration(c.h.rand.IntN(100))*time.Millisecond, func() {
		if c.h.quiet {
			return
		}
		c.busy = true
		c.round++
		c.key = c.h.rand.IntN(len(kinds))
		c.token, c.tries, c.flags = 0, 0, kinds[c.key].flags
		if n := kinds[c.key].shared; n > 0 && c.h.rand.IntN(n) == 0 {
			c.flags |= locks.Shared
		}
		copy(c.ticket[:], c.name)
		binary.BigEndian.PutUint64(c.ticket[8:], c.round)
		c.ask(locks.OpAcquire)
	})
}

// ask sends a request, and again, elsewhere, where no answer comes.
func (c *client) ask(op locks.Op) {
	c.h.ids++
	id := c.h.ids
	c.try = id
	p := c.h.w.nodes[c.node%len(c.h.w.nodes)]
	boot := p.boot
	k := kinds[c.key]
	cmd := locks.Command{Op: op, Ref: id, Key: []byte(keyName(c.key)), Token: c.token}
	switch op {
	case locks.OpAcquire:
		cmd.Ticket, cmd.Flags, cmd.Slots, cmd.Lease, cmd.Wait = c.ticket, c.flags, k.slots, k.lease, k.wait
		if c.tries++; c.tries > 1 {
			cmd.Flags |= locks.Retry
		}
	case locks.OpExtend:
		cmd.Lease = k.lease
	}
	c.h.w.after(time.Millisecond, func() {
		if !p.running(boot) {
			return
		}
		p.ask(func() {
			x := c.connect(p)
			c.h.c.request(x, cmd)
			x.sess.Submit([]locks.Command{cmd}, func() {})
		})
	})
	c.h.w.after(400*time.Millisecond, func() {
		if c.try == id {
			c.node = c.h.rand.IntN(len(c.h.w.nodes))
			c.ask(op)
		}
	})
}

// askSoon asks again after a pause, unless it hears something else meanwhile.
func (c *client) askSoon(op locks.Op) {
	heard := c.hears
	c.h.w.after(20*time.Millisecond, func() {
		if c.hears == heard {
			c.ask(op)
		}
	})
}

func (c *client) heard(r *locks.Reply) {
	c.try = 0
	c.hears++
	switch r.Code {
	case locks.Moved:
		c.node = c.pointer()
		c.askSoon(r.Op)
	case locks.Granted:
		c.token = r.Token
		c.h.c.held(c, r)
		c.work()
	case locks.Extended:
		c.work()
	case locks.Cancelled: // its ticket was asked for elsewhere: by this client, whose later request counts
		c.askSoon(locks.OpAcquire)
	case locks.Released, locks.NotHolder:
		c.h.c.gaveBack(c)
		c.think()
	default: // timed out
		c.think()
	}
}

// giveUp releases a grant that came too late to be used.
func (c *client) giveUp(x *conn, r *locks.Reply) {
	c.h.ids++
	cmd := locks.Command{Op: locks.OpRelease, Ref: c.h.ids, Key: r.Key, Token: r.Token}
	x.p.ask(func() {
		if !x.gone {
			c.h.c.request(x, cmd)
			x.sess.Submit([]locks.Command{cmd}, func() {})
		}
	})
}

// work holds the key for a while, extends it sometimes, and gives it back.
func (c *client) work() {
	c.h.c.write(c)
	c.h.w.after(time.Duration(c.h.rand.IntN(400))*time.Millisecond, func() {
		if !c.h.quiet && c.h.rand.IntN(4) == 0 {
			c.ask(locks.OpExtend)
			return
		}
		c.h.c.write(c)
		c.h.c.gaveBack(c)
		c.ask(locks.OpRelease)
	})
}

// pointer is where the node that it asked sends it, else anywhere.
func (c *client) pointer() int {
	p := c.h.w.nodes[c.node%len(c.h.w.nodes)]
	if p.up {
		for i, name := range c.h.w.cfg.Names {
			if name == p.n.Active().Name {
				return i
			}
		}
	}
	return c.h.rand.IntN(len(c.h.w.nodes))
}
