package client

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"holdfast/wire"
)

// conn is one connection after its hello. Its reader (the member's goroutine)
// is its life: it matches answers to calls, and when it ends, every call that
// is left is told. Requests are encoded into out by whoever makes them; one of
// them at a time, the one that found writing unset, hands out to the socket.
type conn struct {
	// Static.
	c       *Client
	m       *member
	nc      net.Conn
	inline  *inlineWriter // nil where the socket can't be written without blocking
	welcome welcome
	wake    chan struct{} // one slot: the writer is given the writing
	rearm   chan struct{} // one slot: pings are wanted more often
	gone    chan struct{} // closed when the reader ends

	// Guarded by Client.mu.
	standby bool // known to be one, or not in step

	// Owned by the reader.
	in       []byte // a read buffer; in[:end] is filled
	end      int
	finished []*call
	pushes   []push

	// Owned by whoever writes.
	spare []byte
	rest  []byte // what the socket did not take; only while the writer writes

	mu        sync.Mutex // guards what follows
	table     callTable
	out       []byte // encoded requests not yet given to the socket
	writing   bool   // somebody is going to write all of out
	why       error  // why nothing can be sent any more; nil while alive
	closing   bool   // no more requests that callers wait for: Close has begun
	answered  instant
	heard     instant // when anything was read last
	pinged    instant // sending of the ping that is not answered; 0 = none
	pingEvery time.Duration
	sweepAt   instant // when to look for calls that are past their limit; 0 = there are none
}

// welcome is what the node said of itself.
type welcome struct {
	node           string
	role           wire.Role
	active         string // native address of the active, as that node knows it
	activeNode     string
	defaultLeaseMS uint32
}

// push is something that the server said by itself.
type push struct {
	op         wire.Op
	token      uint64
	reason     wire.Reason
	addr, node string
}

const (
	readBufferBytes = 64 << 10
	// maxOutBytes bounds what waits for a socket that takes nothing; requests
	// beyond it are refused.
	maxOutBytes = 8 << 20
	// answersPerLock bounds how long the reader keeps callers from sending.
	answersPerLock = 64
)

var errBusy = &ServerError{Code: wire.CodeLimit, Message: "too many requests are pending on this connection"}

// send queues the request of cl. It fails only if the request was not sent at
// all: with why the connection ended, or errBusy.
func (n *conn) send(cl *call, r *wire.Request, now instant) error {
	n.mu.Lock()
	if err := n.enqueueLocked(cl, r, now); err != nil {
		n.mu.Unlock()
		return err
	}
	n.unlockAndWrite()
	return nil
}

func (n *conn) enqueueLocked(cl *call, r *wire.Request, now instant) error {
	switch {
	case n.why != nil:
		return n.why
	case n.closing && cl.owner == nil:
		return ErrClosed
	}
	id, ok := n.table.put(cl)
	if !ok || len(n.out) > maxOutBytes {
		if ok {
			n.table.remove(id)
		}
		return errBusy
	}
	cl.op, cl.id, cl.sent = r.Op, id, now
	r.ID, r.Key = id, cl.key
	n.out = wire.AppendRequest(n.out, r)
	if cl.leaseMS != 0 {
		n.pingAtLeastLocked(cl.silence())
	}
	if cl.limit != 0 {
		n.sweepAtLocked(cl.limit)
	}
	return nil
}

// withdraw gives cl, whose caller does not wait any longer, to an owner, and
// cancels it if it is an acquire. It returns false if the answer has come after
// all: then it is in cl.res, and cl belongs to the caller.
func (n *conn) withdraw(cl *call, o owner, now instant) bool {
	n.mu.Lock()
	roused := cl.roused
	if cl.dismissed {
		defer n.c.dismissed.Done()
	}
	if n.table.at(cl.id) != cl {
		n.mu.Unlock()
		if !roused { // else done has had one of its two signals at least
			<-cl.done
		}
		return false
	}
	cl.owner = o
	if cl.op == wire.OpAcquire {
		n.cancelLocked(cl.id, now)
	}
	n.unlockAndWrite()
	return true
}

// cancelLocked cancels the acquire with that id. What the cancel itself is
// answered does not matter: the acquire is answered too.
func (n *conn) cancelLocked(id uint32, now instant) {
	cancel := n.c.calls.get("")
	cancel.owner = ignore{}
	if n.enqueueLocked(cancel, &wire.Request{Op: wire.OpCancel, Target: id}, now) != nil {
		n.c.calls.put(cancel)
	}
}

// read serves the connection until it ends, and says why it ended.
func (n *conn) read() error {
	for {
		if err := n.consume(); err != nil {
			return err
		}
		k, err := n.nc.Read(n.in[n.end:])
		n.end += k
		if err != nil && k == 0 {
			return fmt.Errorf("read: %w", err)
		}
	}
}

// consume handles every whole frame in the buffer and keeps the rest.
func (n *conn) consume() error {
	now := n.c.clock.now()
	used, err := 0, error(nil)
	for more := true; more && err == nil; {
		var k int
		k, more, err = n.match(n.in[used:n.end], now)
		used += k
		n.deliver()
	}
	n.end = copy(n.in, n.in[used:n.end])
	return err
}

// match takes up to answersPerLock frames from b and finds their calls. It
// returns how many bytes they had, and whether there may be more.
func (n *conn) match(b []byte, now instant) (used int, more bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard = now
	var r wire.Reply
	for range answersPerLock {
		k, err := r.Decode(b[used:])
		if err != nil {
			return used, false, fmt.Errorf("decode a reply: %w", err)
		}
		if k == 0 {
			return used, false, nil
		}
		used += k
		if r.Status == wire.StatusPush {
			n.pushes = append(n.pushes, push{op: r.Op, token: r.Token, reason: r.Reason, addr: string(r.Addr), node: string(r.Node)})
		} else if err := n.answerLocked(&r); err != nil {
			return used, false, err
		}
	}
	return used, true, nil
}

// answerLocked gives r to the call it answers.
func (n *conn) answerLocked(r *wire.Reply) error {
	if r.Op == wire.OpError { // it answers no request: the connection is at fault
		return &ServerError{Code: r.Code, Message: string(r.Message)}
	}
	cl := n.table.at(r.ID)
	if cl == nil || cl.op != r.Op || !bytes.Equal(cl.key, r.Key) {
		return fmt.Errorf("%v, id %d: an answer to nothing that was asked", r.Op, r.ID)
	}
	n.table.remove(r.ID)
	n.answered = max(n.answered, cl.sent)
	cl.res = result{conn: n, status: r.Status, token: r.Token, leaseMS: r.LeaseMS, base: n.answered, heard: n.heard}
	switch r.Status {
	case wire.StatusMoved:
		cl.res.addr, cl.res.node = string(r.Addr), string(r.Node)
	case wire.StatusError:
		cl.res.err = &ServerError{Code: r.Code, Message: string(r.Message)}
	case wire.StatusPong:
		if cl.op == wire.OpPing {
			n.pinged = 0
		}
	}
	n.finished = append(n.finished, cl)
	return nil
}

// deliver tells whose answers have come, and acts on pushes. Answers first:
// a grant may be lost in the same breath.
func (n *conn) deliver() {
	for i, cl := range n.finished {
		n.finished[i] = nil
		n.c.finish(cl)
	}
	n.finished = n.finished[:0]
	for i := range n.pushes {
		n.c.pushed(n, &n.pushes[i])
	}
	clear(n.pushes)
	n.pushes = n.pushes[:0]
}

// finish tells the owner of cl, or the caller that waits for it. After that
// cl is not ours.
func (c *Client) finish(cl *call) {
	if !c.known.Load() && cl.served() {
		c.serves(cl.res.conn)
	}
	if cl.owner == nil {
		cl.done <- struct{}{}
		return
	}
	cl.owner.finish(cl)
	c.calls.put(cl)
}

// close makes the reader end, and why the reason if it is the first. Nothing
// is sent any more.
func (n *conn) close(why error) {
	n.mu.Lock()
	if n.why == nil {
		n.why = why
	}
	n.mu.Unlock()
	n.nc.Close()
}

// abort is the reader's last deed: it tells all calls that are left. Those of
// closed clients are told so.
func (n *conn) abort() {
	n.mu.Lock()
	err := errDropped
	if errors.Is(n.why, ErrClosed) {
		err = ErrClosed
	}
	for _, cl := range n.table.calls {
		if cl != nil {
			cl.res = result{conn: n, err: err}
			n.finished = append(n.finished, cl)
		}
	}
	n.table = callTable{}
	n.mu.Unlock()
	n.deliver()
}
