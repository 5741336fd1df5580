package bench

import (
	"context"
	"time"

	"holdfast/wire"
)

// loop is closed and pipelined: each slot acquires and releases keys of its
// own, over and over.
func (r *run) loop(ctx context.Context, cancel func()) *Result {
	perSlot := r.cfg.Keys / (r.cfg.Connections * r.cfg.Depth)
	ended := r.everyone(func(w *worker) {
		w.pump(func(s *slot, reply *wire.Reply, now time.Duration) bool {
			return w.pair(s, reply, now, perSlot)
		})
	})
	err := r.await(ctx, time.After(r.cfg.Warmup), ended)
	start := r.now()
	if err == nil && r.measure() {
		r.await(ctx, time.After(r.cfg.Duration), ended) // whatever ends it, the measuring is over
	}
	r.end()
	elapsed := r.now() - start
	late := time.AfterFunc(grace, cancel)
	<-ended
	late.Stop()
	return r.result(elapsed)
}

// pair is the next of loop.
func (w *worker) pair(s *slot, reply *wire.Reply, now time.Duration, perSlot int) bool {
	if reply != nil {
		f := faultOf(reply)
		if w.run.is(measuring) {
			w.record(now - s.sent)
			if s.req.Op == wire.OpRelease && f == faultNone {
				w.measured++
			}
		}
		switch {
		case f != faultNone:
			w.fail(f, 1)
			if f == faultMoved {
				return false // it would be answered the same over and over
			}
		case s.req.Op == wire.OpAcquire:
			s.release(reply.Token)
			return true
		default:
			w.done.Add(1)
		}
	}
	if w.run.is(ending) {
		return false
	}
	w.acquire(s, s.index*perSlot+s.turn)
	s.turn = (s.turn + 1) % perSlot
	return true
}
