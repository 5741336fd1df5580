package native

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// longAgo is a deadline that has passed: setting it wakes whoever waits.
var longAgo = time.Unix(1, 0)

// input is the reading side of a connection, owned by the reader. It holds a
// buffer only while there are bytes in it: a connection that waits for its next
// request has none, and one that waits for the rest of a frame keeps just the
// frame's beginning.
type input struct {
	nc           net.Conn
	raw          syscall.RawConn // nil: not a plain TCP connection
	frameTimeout time.Duration
	ending       *atomic.Uint32        // of the connection; a deadline set here must not undo the wake-up
	try          func(fd uintptr) bool // tryRead, made once

	buf   *buffer
	begun []byte // beginning of a frame, while buf is given back
	n     int    // of the last read
	err   error

	first   [1]byte // what a connection without a raw socket waits with
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
	if in.raw == nil {
		in.morePlain()
	} else if err := in.raw.Read(in.try); err != nil {
		return err
	}
	switch {
	case in.n > 0:
		return nil // an error beside it comes again
	case in.err == nil:
		return io.EOF
	}
	return in.err
}

// tryRead reads once without waiting. It returns false where there was nothing:
// the connection then waits until the socket is readable, without a buffer.
func (in *input) tryRead(fd uintptr) bool {
	b := in.unpark()
	n, again, err := readNow(fd, b.b[b.end:])
	if again {
		in.beforeWait()
		in.park()
		return false
	}
	in.n, in.err = n, err
	b.end += n
	return true
}

// morePlain does the same for a connection that can only wait while it reads:
// it waits with one byte, which is never a whole frame.
func (in *input) morePlain() {
	in.beforeWait()
	if in.buf == nil || in.buf.start == in.buf.end {
		in.park()
		in.n, in.err = in.nc.Read(in.first[:])
		b := in.unpark()
		b.end += copy(b.b[:], in.first[:in.n])
		return
	}
	b := in.unpark()
	in.n, in.err = in.nc.Read(b.b[b.end:])
	b.end += in.n
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
	in.deadline(time.Now().Add(in.frameTimeout))
}

// deadline sets the read deadline. Whoever wants the connection to end first
// says so and then sets a deadline that has passed, which this must not undo.
func (in *input) deadline(t time.Time) {
	in.nc.SetReadDeadline(t)
	if in.ending.Load() != 0 {
		in.nc.SetReadDeadline(longAgo)
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
