package web

import (
	"errors"
	"fmt"
	"strconv"

	"holdfast/internal/locks"
)

// wsOp serves one op. An error is the client's, and answered.
type wsOp struct {
	needsID bool
	run     func(c *socket, m *message) error
}

var wsOps = map[string]wsOp{
	"acquire": {true, (*socket).acquire},
	"release": {true, (*socket).release},
	"extend":  {true, (*socket).extend},
	"cancel":  {true, (*socket).cancel},
	"ping":    {true, (*socket).pong},
	"watch":   {false, (*socket).watch},
	"unwatch": {false, (*socket).endWatch},
}

// take handles one message.
func (c *socket) take(text []byte) {
	m, err := readMessage(text)
	if err != nil {
		c.misuse(err)
		return
	}
	if m.op == "hello" {
		c.hello(&m)
		return
	}
	op, known := wsOps[m.op]
	switch {
	case c.id == nil:
		c.end(wsNoHello)
		return
	case !known:
		c.misuse(&inputError{"op", fmt.Sprintf("%s is none of this protocol", strconv.Quote(shorten(m.op, 32)))})
		return
	case op.needsID && m.id == 0:
		c.misuse(&inputError{"id", "is missing: the answer to " + m.op + " names it"})
		return
	}
	c.greeted = true
	if err := op.run(c, &m); err != nil {
		c.refuse(&m, err)
	}
}

// refuse answers a request that is wrong.
func (c *socket) refuse(m *message, err error) {
	var refusal *refusedError
	if errors.As(err, &refusal) {
		c.say(wsProblem(m.id, refusal.answer))
		return
	}
	c.say(wsProblem(m.id, badInput(err)))
}

// refusedError is a refusal that is not for the input.
type refusedError struct{ answer *answer }

func (e *refusedError) Error() string { return e.answer.plain }

// hello names the client, and says who it is.
func (c *socket) hello(m *message) {
	in, err := decodeMessage(wsHelloSchema, m)
	switch {
	case err != nil:
		c.misuse(err)
		return
	case c.greeted:
		c.misuse(&inputError{"op", "hello must come first, and once"})
		return
	}
	c.greeted, c.owner = true, in.owner
	if c.srv.cfg.Authenticate == nil || in.auth == "" {
		if c.id == nil {
			c.end(wsDenied)
		}
		return
	}
	id, ok := c.srv.cfg.Authenticate(in.auth)
	if !ok {
		c.srv.logDenied(c.req)
		c.end(wsDenied)
		return
	}
	c.id = &id
}

// do runs one command on the socket's session, which the first one opens.
func (c *socket) do(cmd locks.Command) {
	if c.sess == nil {
		c.sess = c.srv.node.Open(c.origin(c.owner), c)
	}
	do(c.sess, cmd)
	c.Flush()
}

func (c *socket) origin(owner string) locks.Origin {
	return locks.Origin{Owner: owner, Remote: c.srv.remote(c.req), Transport: "ws", Identity: c.id.Name}
}

func (c *socket) acquire(m *message) error {
	in, err := decodeMessage(wsAcquireSchema, m)
	if err != nil {
		return err
	}
	if err := c.expect(m.id, in.key); err != nil {
		return err
	}
	cmd := locks.Command{Op: locks.OpAcquire, Ref: m.id, Key: []byte(in.key), Lease: in.lease, Wait: in.wait, Slots: in.slots}
	for flag, set := range map[locks.Flags]bool{
		locks.Try: in.try, locks.Shared: in.shared, locks.Bound: in.bound, locks.Contended: in.contended, locks.Retry: in.ticket != nil,
	} {
		if set {
			cmd.Flags |= flag
		}
	}
	if in.ticket != nil {
		cmd.Ticket = *in.ticket
	}
	if in.owner != "" {
		from := c.origin(in.owner)
		cmd.Origin = &from
	}
	c.do(cmd)
	return nil
}

// expect notes that an acquire is about to be made.
func (c *socket) expect(id uint64, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[id] != nil {
		return &inputError{"id", "is that of an acquire that is not answered yet"}
	}
	if len(c.pending)+c.out.late >= c.srv.cfg.MaxPending {
		return &refusedError{overLimit(key, "pending")}
	}
	c.pending[id] = new(wsPending)
	return nil
}

func (c *socket) release(m *message) error {
	in, err := decodeMessage(releaseSchema, m)
	if err == nil {
		c.do(locks.Command{Op: locks.OpRelease, Ref: m.id, Key: []byte(in.key), Token: in.token})
	}
	return err
}

func (c *socket) extend(m *message) error {
	in, err := decodeMessage(extendSchema, m)
	if err == nil {
		c.do(locks.Command{Op: locks.OpExtend, Ref: m.id, Key: []byte(in.key), Token: in.token, Lease: in.lease})
	}
	return err
}

func (c *socket) cancel(m *message) error {
	in, err := decodeMessage(wsCancelSchema, m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.cancels = append(c.cancels, m.id)
	c.mu.Unlock()
	c.do(locks.Command{Op: locks.OpCancel, Ref: in.target})
	return nil
}

func (c *socket) pong(m *message) error {
	if _, err := decodeMessage(nothing, m); err != nil {
		return err
	}
	c.say(wsAnswer{ID: m.id, Status: "pong"})
	return nil
}
