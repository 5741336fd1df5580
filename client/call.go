package client

import (
	"sync"
	"time"

	"holdfast/wire"
)

// call is one request under way on one connection. The caller that made it
// waits on done, or an owner takes the result without anybody waiting.
type call struct {
	// Set by who makes the request, before it is sent.
	key     []byte
	leaseMS uint32 // of an acquire: it may wait, and its connection must be proved alive meanwhile

	limit instant // of a release or extension: wake its caller then; 0 = never

	// Set by send, read by the reader; owner changes under conn.mu only.
	op    wire.Op
	id    uint32
	sent  instant
	owner owner // nil: a caller waits on done

	// Set by the reader (or by whoever ends the connection) before done or the owner is told.
	res result

	// Set under conn.mu by whoever sends to done although there is no answer:
	// Close, or the writer when limit has passed.
	roused    bool
	dismissed bool // it was Close

	done  chan struct{} // two slots: of the answer and of being roused, so that neither blocks
	timer *time.Timer   // of a caller that waits with a limit; made on first use
}

// owner takes the result of a call. It is called by a connection's reader and
// must not block.
type owner interface {
	finish(cl *call)
}

// ignore is the owner of calls whose result tells nothing.
type ignore struct{}

func (ignore) finish(*call) {}

// result is what became of a call.
type result struct {
	conn    *conn // that answered, or did not
	status  wire.Status
	token   uint64
	leaseMS uint32
	base    instant // the server made the answer no earlier than this
	heard   instant // and it was read by then
	addr    string  // moved: of the active, empty = none known
	node    string
	err     error // *ServerError, errDropped or ErrClosed; then nothing else counts
}

// served says whether the answer is one that only the active gives.
func (cl *call) served() bool {
	if cl.res.err != nil || cl.res.status == wire.StatusMoved {
		return false
	}
	return cl.op == wire.OpAcquire || cl.op == wire.OpRelease || cl.op == wire.OpExtend
}

// callPool recycles calls with their channels. One per client, so that a
// channel made in one test's time bubble is not used in another's.
type callPool struct{ pool sync.Pool }

func (p *callPool) get(key string) *call {
	cl, _ := p.pool.Get().(*call)
	if cl == nil {
		cl = &call{done: make(chan struct{}, 2)}
	}
	cl.key = append(cl.key[:0], key...)
	return cl
}

// put takes back a call that is answered, or was never sent. One that was
// roused is left alone: a signal may still be in done.
func (p *callPool) put(cl *call) {
	if cl.roused {
		return
	}
	cl.owner, cl.leaseMS, cl.limit, cl.res = nil, 0, 0, result{}
	p.pool.Put(cl)
}

// wait waits for the answer, for stop to be closed, for limit to pass (0 = no
// limit), or to be roused.
func (cl *call) wait(stop <-chan struct{}, limit time.Duration) (answered bool) {
	if limit != 0 {
		return cl.waitUntil(stop, limit)
	}
	if stop == nil {
		<-cl.done
		return !cl.roused
	}
	select {
	case <-cl.done:
		return !cl.roused
	case <-stop:
		return false
	}
}

func (cl *call) waitUntil(stop <-chan struct{}, limit time.Duration) (answered bool) {
	if cl.timer == nil {
		cl.timer = time.NewTimer(limit)
	} else {
		cl.timer.Reset(limit)
	}
	defer cl.timer.Stop()
	select {
	case <-cl.done:
		return !cl.roused
	case <-stop:
		return false
	case <-cl.timer.C:
		return false
	}
}

// rouse wakes the caller without an answer, once. The caller holds conn.mu.
func (cl *call) rouse() {
	if !cl.roused {
		cl.roused = true
		cl.done <- struct{}{}
	}
}

// maxPending bounds the requests pending on one connection. A server's own
// bound is lower as a rule (65,536 queued); more are refused.
const maxPending = 1 << 20

// callTable finds calls by id. Ids are places in it plus 1, hence never 0, and
// the place that became free last is taken first, so the table stays short.
type callTable struct {
	calls []*call
	free  []uint32
}

// put gives cl an id; ok is false if the table is full.
func (t *callTable) put(cl *call) (id uint32, ok bool) {
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
		t.calls[id-1] = cl
		return id, true
	}
	if len(t.calls) == maxPending {
		return 0, false
	}
	t.calls = append(t.calls, cl)
	return uint32(len(t.calls)), true
}

// at returns the call with that id, or nil.
func (t *callTable) at(id uint32) *call {
	if id == 0 || int64(id) > int64(len(t.calls)) {
		return nil
	}
	return t.calls[id-1]
}

func (t *callTable) remove(id uint32) {
	t.calls[id-1] = nil
	t.free = append(t.free, id)
}

func (t *callTable) pending() int { return len(t.calls) - len(t.free) }
