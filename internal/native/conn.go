package native

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/wire"
)

// conn is one connection. Its reader is its life: see the package comment.
type conn struct {
	// Static after construction.
	srv     *Server
	nc      net.Conn
	remote  string
	release func() // gives the admission back

	// How to read and write without waiting; nil: not a plain TCP connection.
	// The functions are made once.
	raw               syscall.RawConn
	tryRead, tryWrite func(fd uintptr) bool

	// Owned by the reader.
	in       input
	sess     *node.Session // nil until the hello is accepted
	acquires uint32        // made so far
	room     int           // acquires that may be made before pending has to be looked at
	last     []byte        // what is written when the connection ends

	// Set by anyone.
	ending atomic.Uint32 // why the connection ends: the first reason given
	killed atomic.Bool   // nothing is waited for any more

	mu      sync.Mutex // guards what follows; after node.mu
	pending *pending   // nil until an acquire has to wait
	out     output
}

func newConn(s *Server, nc net.Conn, release func()) *conn {
	c := &conn{srv: s, nc: nc, raw: plainTCP(nc), remote: nc.RemoteAddr().String(), release: release}
	c.in.c = c
	if c.raw != nil {
		c.tryRead, c.tryWrite = c.in.tryRead, c.out.tryWrite
	}
	return c
}

// interrupt says why the connection must end and wakes its reader. It does not
// block, and does nothing once a reason is given.
func (c *conn) interrupt(why ending) {
	if c.ending.CompareAndSwap(uint32(goesOn), uint32(why)) {
		c.nc.SetReadDeadline(longAgo)
	}
}

// kill ends the connection without waiting for anything.
func (c *conn) kill() {
	c.killed.Store(true)
	c.interrupt(killed)
	c.nc.SetDeadline(longAgo)
}

// serve is the reader. It waits on a small stack of its own and works on a
// borrowed one: see workers.
func (c *conn) serve() {
	why := goesOn
	for why == goesOn {
		if err := c.in.more(); err != nil {
			why = c.readEnding(err)
		} else {
			why = c.srv.workers.run(c)
		}
	}
	c.ending.CompareAndSwap(uint32(goesOn), uint32(why))
	c.finish(ending(c.ending.Load()))
}

// work handles what was read.
func (c *conn) work(b *batch) ending {
	if !c.in.judged {
		if why := c.stranger(); why != goesOn {
			return why
		}
		c.in.judged = len(c.in.bytes()) >= 4
	}
	if why := c.consume(b); why != goesOn {
		return why
	}
	c.Flush()
	return c.outputEnding()
}

// readEnding is why a read ended.
func (c *conn) readEnding(err error) ending {
	switch why := ending(c.ending.Load()); {
	case why != goesOn:
		return why
	case errors.Is(err, io.EOF):
		return endOfInput
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return readFailed
	case c.sess == nil:
		return noHello
	}
	return frameTooSlow
}

// outputEnding says whether the client has left too many answers unread.
func (c *conn) outputEnding() ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.counted > c.srv.cfg.OutputLimit {
		return outputFull
	}
	return goesOn
}

// finish ends the connection: what is queued leaves the queue, answers already
// made are written, and grants that the client did not get are given back.
func (c *conn) finish(why ending) {
	how := endings[why]
	if c.sess != nil {
		if why == nodeStops {
			c.answerMoved()
		}
		c.sess.Close()
	}
	c.endOutput(how.flush)
	c.giveBack()
	if how.linger {
		c.linger()
	}
	c.nc.Close()
	c.in.close()
	c.release()
	c.srv.gone(c, why)
}

// answerMoved withdraws every queued acquire and answers it "moved", and says
// so once for the node.
func (c *conn) answerMoved() {
	frame := wire.Reply{Op: wire.OpMoved, Status: wire.StatusPush}
	c.srv.pointElsewhere(&frame)
	c.last = wire.AppendReply(nil, &frame)
	refs := c.beginLeaving()
	b := new(batch)
	for _, r := range refs {
		if b.n == batchSize {
			c.run(b)
		}
		b.commands[b.n] = locks.Command{Op: locks.OpCancel, Ref: uint64(r)}
		b.n++
	}
	c.run(b)
}

// beginLeaving returns what has to be withdrawn.
func (c *conn) beginLeaving() []ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		return nil
	}
	c.pending.leaving = true
	refs := c.pending.all()
	for range refs {
		c.pending.cancels = append(c.pending.cancels, cancelling{quiet: true})
	}
	return refs
}

// endOutput takes the writer's role for good and, if asked to, writes the
// answers that are left, for a bounded time.
func (c *conn) endOutput(flush bool) {
	c.nc.SetWriteDeadline(time.Now().Add(c.srv.cfg.FlushTimeout))
	if !flush || c.killed.Load() {
		c.nc.SetWriteDeadline(longAgo)
	}
	c.takeOver()
	if !flush {
		return
	}
	c.writeRest()
	if c.last != nil {
		c.mu.Lock()
		c.out.addBytes(c.last)
		c.mu.Unlock()
		c.writeRest()
	}
}

// giveBack reports the grants that were not wholly handed to the socket, and
// drops what is left of the output.
func (c *conn) giveBack() {
	type grant struct {
		key   []byte
		token locks.Token
	}
	var lost []grant
	c.mu.Lock()
	note := func(key []byte, token uint64) {
		lost = append(lost, grant{append([]byte(nil), key...), locks.Token(token)})
	}
	c.out.unsentGrants(note)
	if c.pending != nil {
		c.pending.order.grants(note)
		c.pending.order = ordered{}
	}
	c.out.drop()
	c.mu.Unlock()
	for _, g := range lost {
		c.sess.Undelivered(g.key, g.token)
	}
}

// linger tells the client that nothing more comes, and reads on until it closes
// too, so that what was written arrives: a close with unread input would reset
// the connection.
func (c *conn) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(c.srv.cfg.DrainTimeout))
	if c.killed.Load() {
		return
	}
	b := takeBuffer()
	defer giveBuffer(b)
	for left := c.srv.cfg.DrainBytes; left > 0; {
		n, err := c.nc.Read(b.b[:])
		if err != nil {
			return
		}
		left -= n
	}
}
