package native

import (
	"io"
	"time"
)

// longAgo is a deadline that has passed: setting it wakes whoever waits.
var longAgo = time.Unix(1, 0)

// input is the reading side of a connection, owned by the reader. It holds a
// buffer only while there are bytes in it: a connection that waits for its next
// request has none, and one that waits for the rest of a frame keeps just the
// frame's beginning.
type input struct {
	c *conn

	buf   *buffer
	begun []byte // beginning of a frame, while buf is given back

	first   [1]byte // what a connection without a raw socket waits with
	judged  bool    // the first bytes of all were looked at
	greeted bool    // the hello is done: from now on each frame has a deadline of its own
	timed   bool    // a frame's deadline is set
}

// bytes are those that were read and not taken.
func (in *input) bytes() []byte {
	if in.buf == nil {
		return nil
	}
	return in.buf.bytes()
}

// take marks the first n bytes, a whole frame, as used.
func (in *input) take(n int) {
	in.buf.start += n
	if in.timed {
		in.timed = false
		in.deadline(time.Time{})
	}
}

// more waits for bytes and adds them to those that are there.
func (in *input) more() error {
	if in.c.raw == nil {
		in.morePlain()
	} else if err := in.c.raw.Read(in.c.tryRead); err != nil {
		return err
	}
	b := in.buf
	if b.n == 0 {
		return b.err
	}
	b.end += b.n
	return nil // an error beside it comes again
}

// tryRead reads once without waiting. It returns false where there was nothing:
// the connection then waits until the socket is readable, without a buffer.
func (in *input) tryRead(fd uintptr) bool {
	b := in.unpark()
	var again bool
	if b.n, again, b.err = readNow(fd, b.b[b.end:]); again {
		in.beforeWait()
		in.park()
	}
	return !again
}

// morePlain does the same for a connection that can only wait while it reads:
// it waits with one byte, which is never a whole frame.
func (in *input) morePlain() {
	in.beforeWait()
	if len(in.bytes()) == 0 {
		in.park()
		n, err := readSome(in.c.nc, in.first[:])
		b := in.unpark()
		b.n, b.err = copy(b.b[:], in.first[:n]), err
		return
	}
	b := in.unpark()
	b.n, b.err = readSome(in.c.nc, b.b[b.end:])
}

// readSome returns at least one byte or an error: a Read may return neither.
func readSome(r io.Reader, p []byte) (n int, err error) {
	for n == 0 && err == nil {
		n, err = r.Read(p)
	}
	return n, err
}

// unpark makes sure of a buffer that begins with the bytes that are there. It
// has room for more, since a frame never fills it.
func (in *input) unpark() *buffer {
	if in.buf == nil {
		in.buf = takeBuffer()
		in.buf.end = copy(in.buf.b[:], in.begun)
		in.begun = in.begun[:0]
	} else if in.buf.start > 0 {
		in.buf.end = copy(in.buf.b[:], in.buf.bytes())
		in.buf.start = 0
	}
	return in.buf
}

// keptBegun is how much room for the beginning of a frame a connection keeps.
const keptBegun = 128

// park gives the buffer back.
func (in *input) park() {
	if in.buf == nil {
		return
	}
	in.begun = append(in.begun[:0], in.buf.bytes()...)
	if len(in.begun) == 0 && cap(in.begun) > keptBegun {
		in.begun = nil
	}
	giveBuffer(in.buf)
	in.buf = nil
}

// beforeWait sets the deadline of a frame that is begun.
func (in *input) beforeWait() {
	if !in.greeted || in.timed || len(in.bytes()) == 0 {
		return
	}
	in.timed = true
	in.deadline(time.Now().Add(in.c.srv.cfg.FrameTimeout))
}

// deadline sets the read deadline. Whoever wants the connection to end first
// says so and then sets a deadline that has passed, which this must not undo.
func (in *input) deadline(t time.Time) {
	in.c.nc.SetReadDeadline(t)
	if in.c.ending.Load() != 0 {
		in.c.nc.SetReadDeadline(longAgo)
	}
}

// close gives back what is held.
func (in *input) close() {
	if in.buf != nil {
		giveBuffer(in.buf)
		in.buf = nil
	}
	in.begun = nil
}
