package native

import (
	"errors"

	"holdfast/internal/locks"
	"holdfast/wire"
)

// batchSize bounds the commands that run under one hold of the node's mutex, so
// that one busy connection does not keep the others waiting.
const batchSize = 128

// batch is the commands that are to run next. Their keys point into the input.
type batch struct {
	request  wire.Request // decoded last; here, as on the stack it would escape
	commands [batchSize]locks.Command
	n        int
}

// consume handles every whole frame of the input.
func (c *conn) consume(b *batch) ending {
	r := &b.request
	for {
		n, err := r.Decode(c.in.bytes())
		if err != nil {
			c.run(b)
			return c.malformed(err)
		}
		if n == 0 {
			c.run(b)
			return goesOn
		}
		if why := c.handle(r, b); why != goesOn {
			return why
		}
		c.in.take(n)
	}
}

// run runs the batch. Afterwards the input may be overwritten.
func (c *conn) run(b *batch) {
	if b.n > 0 {
		c.sess.Do(b.commands[:b.n])
		b.n = 0
	}
}

// add makes a command of r, the last of the batch.
func (c *conn) add(r *wire.Request, b *batch) *locks.Command {
	if b.n == batchSize {
		c.run(b)
	}
	cmd := &b.commands[b.n]
	b.n++
	command(r, cmd)
	return cmd
}

// handle deals with one request. Whatever the connection answers by itself
// comes after the answers of the batch so far, which therefore runs first.
func (c *conn) handle(r *wire.Request, b *batch) ending {
	if c.sess == nil {
		return c.hello(r)
	}
	if r.Op == wire.OpHello {
		c.run(b)
		return c.misused(r, "a second hello")
	}
	if err := r.Check(); err != nil {
		c.run(b)
		c.answerError(r, wire.CodeBadArgument, err.Error())
		return goesOn
	}
	switch r.Op {
	case wire.OpAcquire:
		c.acquire(r, b)
	case wire.OpCancel:
		c.cancel(r, b)
	case wire.OpPing:
		c.run(b)
		c.answer(&wire.Reply{Op: wire.OpPing, Status: wire.StatusPong, ID: r.ID})
	default:
		c.add(r, b)
	}
	return goesOn
}

func (c *conn) acquire(r *wire.Request, b *batch) {
	if r.ID == 0 && r.Flags&wire.FlagRetry != 0 {
		c.run(b)
		if c.waitsFor(r.Key) {
			c.answerError(r, wire.CodeBadArgument, "id: 0 with RETRY while another acquire of this key is pending on this connection; give it an id")
			return
		}
	}
	if c.room == 0 {
		c.run(b)
		c.measureRoom()
	}
	ref := c.nextRef(r.ID)
	if c.room == 0 {
		c.acquireWithoutRoom(r, b, ref)
		return
	}
	c.room--
	c.add(r, b).Ref = uint64(ref)
}

// acquireWithoutRoom lets the table judge an acquire that must not wait; one of
// ordered mode that has others before it would have to, whatever the judgement.
func (c *conn) acquireWithoutRoom(r *wire.Request, b *batch, ref ref) {
	if r.ID == 0 {
		frame := wire.Reply{Key: r.Key}
		c.srv.messages.limit(&frame)
		if c.refuse(ref, &frame) {
			return
		}
	}
	cmd := c.add(r, b)
	if r.Flags&wire.FlagTry == 0 {
		cmd.Flags |= locks.Try
		ref |= triedBit
	}
	cmd.Ref = uint64(ref)
}

// measureRoom finds how many acquires may be made before the connection could
// stand at MaxPending. Only its own requests bring it nearer, so that until
// then nothing has to be counted.
func (c *conn) measureRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room = c.roomLeft()
}

// roomLeft is how far the connection is from MaxPending. It needs c.mu.
func (c *conn) roomLeft() int {
	left := c.srv.cfg.MaxPending - c.out.late
	if p := c.pending; p != nil {
		left -= p.queued + p.order.held
	}
	return max(left, 0)
}

// refuse answers an acquire of ordered mode for which there is no room, if it
// has others before it.
func (c *conn) refuse(r ref, frame *wire.Reply) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending != nil && c.pending.order.refuse(r, frame)
}

func (c *conn) nextRef(id uint32) ref {
	c.acquires++
	return makeRef(c.acquires, id)
}

func (c *conn) waitsFor(key []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending != nil && c.pending.waitsFor(key)
}

// cancel withdraws the oldest acquire of the id that is queued. The batch runs
// first, as that acquire may stand in it, and then the cancel on its own, as
// the next one may mean the next acquire of the same id.
func (c *conn) cancel(r *wire.Request, b *batch) {
	c.run(b)
	target, ok := c.beginCancel(r)
	if !ok {
		c.answer(&wire.Reply{Op: wire.OpCancel, Status: wire.StatusNone, ID: r.ID})
		return
	}
	*c.add(r, b) = locks.Command{Op: locks.OpCancel, Ref: uint64(target)}
	c.run(b)
}

// beginCancel finds what a cancel means.
func (c *conn) beginCancel(r *wire.Request) (ref, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return 0, false
	}
	target, ok := c.pending.oldest(r.Target)
	if ok {
		c.pending.cancels = append(c.pending.cancels, cancelling{id: r.ID})
	}
	return target, ok
}

// malformed answers a frame that breaks the protocol.
func (c *conn) malformed(err error) ending {
	var fault *wire.FrameError
	if !errors.As(err, &fault) {
		fault = &wire.FrameError{Op: wire.OpError, Detail: err.Error()}
	}
	frame := fault.Answer()
	return c.lastWord(misuse, &frame)
}

// misused answers a frame that may not come here.
func (c *conn) misused(r *wire.Request, what string) ending {
	return c.lastWord(misuse, &wire.Reply{
		Op: r.Op, Status: wire.StatusError, ID: r.ID, Key: r.Key, Code: wire.CodeMalformed, Message: []byte(what),
	})
}

// lastWord keeps an error after which the connection ends. It goes out behind
// all other answers, but does not wait for those that never come.
func (c *conn) lastWord(why ending, frame *wire.Reply) ending {
	c.last = wire.AppendReply(nil, frame)
	return why
}
