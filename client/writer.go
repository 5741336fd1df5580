package client

import (
	"fmt"
	"runtime"
	"time"

	"holdfast/wire"
)

// How requests reach the socket. A plain socket is written to by the callers
// themselves, without blocking: one of them at a time takes all that has been
// queued. Unless it is alone it lets other callers run first: those that were
// answered by the same read have their next requests ready, and one write of
// many is much cheaper than many writes (measured with 256 callers: 25 requests
// a write instead of 1, three times the throughput; having the reader wait for
// the callers it has woken was worse, since it keeps a processor from them).
//
// What the socket does not take at once, and everything for sockets
// that can only be written to by blocking (TLS, custom dialers), goes to the
// connection's writer goroutine, which sends the pings as well.

// writeChunkBytes is what must be taken within one ping timeout.
const writeChunkBytes = 64 << 10

// unlockAndWrite gives up the mutex and sees to it that out gets written.
func (n *conn) unlockAndWrite() {
	mine := !n.writing && n.why == nil
	if mine {
		n.writing = true
	}
	alone := n.table.pending() <= 1
	n.mu.Unlock()
	switch {
	case !mine:
	case n.inline != nil:
		if !alone {
			runtime.Gosched()
		}
		n.writeInline()
	default:
		n.wake <- struct{}{} // never blocks: only who set writing sends, once
	}
}

// take returns all that is queued, or nil and no longer writing.
func (n *conn) take() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.out) == 0 || n.why != nil {
		n.writing = false
		return nil
	}
	b := n.out
	n.out, n.spare = n.spare[:0], nil
	return b
}

// writeInline writes what the socket takes; the writer gets the rest.
func (n *conn) writeInline() {
	for b := n.take(); b != nil; b = n.take() {
		k, err := n.inline.write(b)
		if err != nil {
			n.close(fmt.Errorf("write: %w", err))
			continue // take ends the writing
		}
		if k < len(b) {
			n.rest = b[k:]
			n.wake <- struct{}{}
			return
		}
		n.keep(b)
	}
}

// keep keeps b for the next requests, unless a burst has made it large.
func (n *conn) keep(b []byte) {
	if cap(b) <= 4*writeChunkBytes {
		n.spare = b
	}
}

// writeBlocking does the same, as long as it takes.
func (n *conn) writeBlocking() {
	b := n.rest
	n.rest = nil
	if b == nil {
		b = n.take()
	}
	for ; b != nil; b = n.take() {
		if err := n.writeAll(b); err != nil {
			n.close(fmt.Errorf("write: %w", err))
			continue
		}
		n.keep(b)
	}
}

func (n *conn) writeAll(b []byte) error {
	defer n.nc.SetWriteDeadline(time.Time{})
	for len(b) > 0 {
		if err := n.nc.SetWriteDeadline(time.Now().Add(n.c.cfg.pingTimeout)); err != nil {
			return err
		}
		k, err := n.nc.Write(b[:min(len(b), writeChunkBytes)])
		if err != nil {
			return err
		}
		b = b[k:]
	}
	return nil
}

// write is the writer goroutine. It ends when the reader has.
func (n *conn) write() {
	timer := time.NewTimer(n.tend())
	defer timer.Stop()
	for {
		select {
		case <-n.wake:
			n.writeBlocking()
		case <-timer.C:
			timer.Reset(n.tend())
		case <-n.rearm:
			timer.Reset(n.tend())
		case <-n.gone:
			return
		}
	}
}

// waitingPing is the longest silence while an acquire is under way. A node that
// is cut off, rather than dead, is replaced after a second, and places in line
// are kept for five more: by then the client has to have given it up.
const waitingPing = 2 * time.Second

// silence is how long nothing may be heard while an acquire is under way.
func (cl *call) silence() time.Duration { return min(milli(cl.leaseMS)/3, waitingPing) }

// doubt has a ping sent now: something was not answered in time.
func (n *conn) doubt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pingAtLeastLocked(minPing)
}

// minPing keeps tiny leases from turning pings into load.
const minPing = time.Millisecond

// pingAtLeastLocked makes sure that nothing goes unanswered for longer than
// every while somebody waits: that is what a grant's Until is counted from.
func (n *conn) pingAtLeastLocked(every time.Duration) {
	every = max(every, minPing)
	if every >= n.pingEvery {
		return
	}
	n.pingEvery = every
	select {
	case n.rearm <- struct{}{}:
	default:
	}
}

// tend does what is due, and says when to come again.
func (n *conn) tend() time.Duration {
	return min(n.checkPing(), n.sweep())
}

// sweepAtLocked makes sure that a call with that limit is not waited for longer.
func (n *conn) sweepAtLocked(limit instant) {
	if n.sweepAt != 0 && n.sweepAt <= limit {
		return
	}
	n.sweepAt = limit
	select {
	case n.rearm <- struct{}{}:
	default:
	}
}

// minSweep bounds how often all calls are looked through.
const minSweep = 20 * time.Millisecond

// sweep rouses the callers whose calls are past their limit. One look at all
// calls now and then is cheaper than a timer for each.
func (n *conn) sweep() time.Duration {
	now := n.c.clock.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sweepAt > now {
		return n.sweepAt.sub(now)
	}
	if n.sweepAt == 0 {
		return time.Hour
	}
	n.sweepAt = 0
	for _, cl := range n.table.calls {
		switch {
		case cl == nil || cl.limit == 0 || cl.owner != nil:
		case cl.limit <= now:
			cl.rouse()
			cl.limit = 0
		case n.sweepAt == 0 || cl.limit < n.sweepAt:
			n.sweepAt = cl.limit
		}
	}
	if n.sweepAt == 0 {
		return time.Hour
	}
	n.sweepAt = max(n.sweepAt, now.add(minSweep))
	return n.sweepAt.sub(now)
}

// checkPing sends a ping if one is due, or ends a connection that left one
// unanswered. It returns when to come again.
func (n *conn) checkPing() time.Duration {
	now := n.c.clock.now()
	n.mu.Lock()
	if n.pinged != 0 && n.heard < n.pinged {
		left := n.pinged.add(n.c.cfg.pingTimeout).sub(now)
		n.mu.Unlock()
		if left > 0 {
			return left
		}
		n.close(fmt.Errorf("nothing heard for %v after a ping", n.c.cfg.pingTimeout))
		return time.Hour
	}
	due := max(n.answered, n.pinged).add(n.pingEvery)
	if now < due {
		n.mu.Unlock()
		return due.sub(now)
	}
	n.pingLocked(now)
	next := n.pingEvery
	if n.pinged == now { // its answer is waited for no longer than this
		next = min(next, n.c.cfg.pingTimeout)
	}
	n.unlockAndWrite()
	return next
}

// pingLocked sends a ping, and finds anew how often that must be.
func (n *conn) pingLocked(now instant) {
	n.pingEvery = n.c.cfg.pingEvery
	for _, cl := range n.table.calls {
		if cl != nil && cl.leaseMS != 0 {
			n.pingEvery = max(minPing, min(n.pingEvery, cl.silence()))
		}
	}
	ping := n.c.calls.get("")
	ping.owner = ignore{}
	if n.enqueueLocked(ping, &wire.Request{Op: wire.OpPing}, now) != nil {
		n.c.calls.put(ping)
		return
	}
	n.pinged = now
	n.c.count.pings.Add(1)
}
