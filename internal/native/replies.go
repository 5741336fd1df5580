package native

import (
	"holdfast/internal/locks"
	"holdfast/wire"
)

// Push takes a reply of the table, or of the node in its stead. The node calls
// it under its mutex.
func (c *conn) Push(r *locks.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var frame wire.Reply
	told := c.srv.messages.frame(r, &frame)
	frame.ID = ref(r.Ref).id()
	c.srv.pointElsewhere(&frame)
	switch r.Op {
	case locks.OpAcquire:
		c.pushAcquire(r, &frame)
	case locks.OpRelease, locks.OpExtend:
		c.out.add(&frame, counts)
	case locks.OpCancel: // the reply names the acquire, not the cancel
		if asked := c.pending.nextCancel(); !asked.quiet {
			frame.ID, frame.Key = asked.id, nil
			c.out.add(&frame, counts)
		}
	case 0:
		if told {
			c.push(&frame)
		}
	}
}

// push takes what the server says by itself. Advice must not fill the output
// and is dropped instead; that the node moved is no advice, and so rare that it
// may count.
func (c *conn) push(frame *wire.Reply) {
	switch {
	case frame.Op == wire.OpMoved:
		c.out.add(frame, counts)
	case c.out.size <= c.srv.cfg.OutputLimit:
		c.out.add(frame, nothing)
	}
}

// pushAcquire takes the answer to an acquire, or the note that it waits.
func (c *conn) pushAcquire(r *locks.Reply, frame *wire.Reply) {
	ref := ref(r.Ref)
	if r.Code == locks.Queued {
		if c.pending == nil {
			c.pending = new(pending)
		}
		c.pending.queue(ref, r.Key)
		return
	}
	switch {
	case r.Held && ref&triedBit != 0: // it would have had to wait
		c.srv.messages.limit(frame)
	case r.Code == locks.Cancelled && c.pending != nil && c.pending.leaving:
		*frame = wire.Reply{Op: wire.OpAcquire, Status: wire.StatusMoved, ID: frame.ID, Key: frame.Key}
		c.srv.pointElsewhere(frame)
	}
	w := counts
	if p := c.pending; p != nil {
		if p.settle(ref, r.Key) {
			w = pends
		}
		if ref.id() == 0 && p.order.hold(ref, frame) {
			return
		}
	}
	c.out.add(frame, w)
}

// pointElsewhere tells where the active is in a frame that says "moved", as
// far as it is known. This node's own address is never told: a client that
// comes too early, or after the node took over again, would be sent in a circle.
func (s *Server) pointElsewhere(frame *wire.Reply) {
	if frame.Status != wire.StatusMoved && frame.Op != wire.OpMoved {
		return
	}
	if a := s.active(); !a.Here {
		frame.Addr, frame.Node = []byte(a.Native), []byte(a.Name)
	}
}

// answer sends what the connection itself has to say to a request.
func (c *conn) answer(frame *wire.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame.Op != wire.OpAcquire || frame.ID != 0 || !c.holdBack(frame) {
		c.out.add(frame, counts)
	}
}

// holdBack keeps an answer of ordered mode that has others before it. Where
// there is no room for one more that waits, it is an error instead.
func (c *conn) holdBack(frame *wire.Reply) bool {
	p := c.pending
	if p == nil {
		return false
	}
	r := c.nextRef(0)
	if c.roomLeft() > 0 {
		c.room = max(c.room-1, 0)
		return p.order.hold(r, frame)
	}
	limited := wire.Reply{Key: frame.Key}
	c.srv.messages.limit(&limited)
	return p.order.refuse(r, &limited)
}

// answerError sends an error to request r; the connection may go on.
func (c *conn) answerError(r *wire.Request, code wire.Code, message string) {
	c.answer(&wire.Reply{Op: r.Op, Status: wire.StatusError, ID: r.ID, Key: r.Key, Code: code, Message: []byte(message)})
}
