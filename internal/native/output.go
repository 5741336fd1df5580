package native

import "holdfast/wire"

// output is the writing side of a connection: the frames that were not handed
// to the socket yet, in buffers of whole frames. All of it is guarded by
// conn.mu, but what belongs to the writer's role.
type output struct {
	head, tail *buffer
	size       int           // bytes in the buffers
	counted    int           // of those, the ones that count towards OutputLimit
	late       int           // answers that fell due on their own, not taken by a writer yet
	writing    bool          // somebody has the writer's role
	closed     bool          // the role is the reader's for good, or for nobody
	failed     bool          // a write failed: nothing more can be written
	free       chan struct{} // closed when the role is given up; nil: nobody waits for that
}

// weight says how a frame counts.
type weight uint8

const (
	counts  weight = iota // an answer at once to a request: towards OutputLimit
	pends                 // an answer that fell due on its own: as pending, until a writer takes it
	nothing               // advice, and what is made only as the socket takes it
)

// add appends a frame.
func (o *output) add(r *wire.Reply, w weight) {
	b := o.tail
	if b == nil || b.room() < frameMost && b.room() < frameBound(r) {
		b = o.grow()
	}
	o.appendTo(b, r, w)
}

// addIfRoom does so unless that takes another buffer.
func (o *output) addIfRoom(r *wire.Reply, w weight) bool {
	b := o.tail
	if b == nil {
		b = o.grow()
	}
	if b.room() < frameBound(r) {
		return false
	}
	o.appendTo(b, r, w)
	return true
}

func (o *output) appendTo(b *buffer, r *wire.Reply, w weight) {
	n := len(wire.AppendReply(b.b[:b.end], r)) - b.end
	b.end += n
	o.size += n
	switch w {
	case counts:
		b.counted += n
		o.counted += n
	case pends:
		b.late++
		o.late++
	}
}

// frameMost is the size of the largest frame.
const frameMost = 4 + wire.MaxFrameBytes

// frameBound is at least the size of r's frame.
func frameBound(r *wire.Reply) int {
	const fixed = wire.HeaderBytes + 64 // and all fields of fixed size
	texts := len(r.Key) + len(r.Message) + len(r.Addr) + len(r.Node) + len(r.Software) + len(r.ActiveNode)
	return min(fixed+texts, frameMost)
}

// addBytes appends what is at most one frame long.
func (o *output) addBytes(p []byte) {
	b := o.tail
	if b == nil || b.room() < len(p) {
		b = o.grow()
	}
	n := copy(b.b[b.end:], p)
	b.end += n
	o.size += n
}

// grow adds a buffer.
func (o *output) grow() *buffer {
	b := takeBuffer()
	if o.tail == nil {
		o.head = b
	} else {
		o.tail.next = b
	}
	o.tail = b
	return b
}

// begin gives the writer the buffer to write next, up to where it is full now.
// What is appended meanwhile goes behind that.
func (o *output) begin() *buffer {
	b := o.head
	o.late -= b.late
	b.late = 0
	b.writing = b.end - b.start
	return b
}

// wrote takes n bytes off the head.
func (o *output) wrote(n int) {
	b := o.head
	b.start += n
	o.size -= n
	if b.start < b.end {
		return
	}
	o.counted -= b.counted
	o.late -= b.late
	if o.head = b.next; o.head == nil {
		o.tail = nil
	}
	giveBuffer(b)
}

// tryWrite writes what the socket takes of the head, without waiting. It may look
// at the head without conn.mu: only the writer takes it away.
func (o *output) tryWrite(fd uintptr) bool {
	b := o.head
	b.n, _, b.err = writeNow(fd, b.b[b.start:][:b.writing])
	return true
}

// giveUp ends the writer's role.
func (o *output) giveUp() {
	o.writing = false
	if o.free != nil {
		close(o.free)
		o.free = nil
	}
}

// unsentGrants calls f for every grant whose frame was not wholly written.
func (o *output) unsentGrants(f func(key []byte, token uint64)) {
	for b := o.head; b != nil; b = b.next {
		for at := 0; at < b.end; {
			var r wire.Reply
			n, err := r.Decode(b.b[at:b.end])
			if err != nil || n == 0 {
				return // not frames: an answer to another protocol
			}
			if at += n; at > b.start && r.Op == wire.OpAcquire && r.Status == wire.StatusGranted {
				f(r.Key, r.Token)
			}
		}
	}
}

// drop gives all buffers back.
func (o *output) drop() {
	for o.head != nil {
		next := o.head.next
		giveBuffer(o.head)
		o.head = next
	}
	o.tail, o.size, o.counted, o.late = nil, 0, 0, 0
}
