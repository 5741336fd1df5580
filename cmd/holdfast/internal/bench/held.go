package bench

import (
	"context"
	"time"

	"holdfast/wire"
)

// held acquires all keys and releases none until it has measured that.
func (r *run) held(ctx context.Context) *Result {
	tokens := make([]uint64, r.cfg.Keys)
	r.measure()
	start := r.now()
	ended := r.everyone(func(w *worker) {
		mine := w.share(len(tokens))
		w.pump(func(s *slot, reply *wire.Reply, now time.Duration) bool {
			return w.take(s, reply, now, tokens, &mine)
		})
	})
	r.await(ctx, nil, ended)
	<-ended // soon, as ctx's end makes the slots end; bounded by Run's timers
	result := r.result(r.now() - start)
	if !r.cfg.Leave {
		r.giveBack(tokens)
		result.Errors = r.faults().byName()
	}
	return result
}

// span is a range of key numbers not yet dealt with.
type span struct{ next, end int }

// share is the worker's part of n keys.
func (w *worker) share(n int) span {
	i := w.slots[0].index / len(w.slots)
	of := len(w.run.workers)
	return span{n * i / of, n * (i + 1) / of}
}

// take is the next of held's first half: it stores the token of each key.
func (w *worker) take(s *slot, reply *wire.Reply, now time.Duration, tokens []uint64, mine *span) bool {
	if reply != nil {
		w.record(now - s.sent)
		f := faultOf(reply)
		if f == faultNone {
			tokens[s.turn] = reply.Token
			w.measured++
			w.done.Add(1)
		} else {
			w.fail(f, 1)
		}
	}
	if mine.next == mine.end || !w.run.is(measuring) {
		return false
	}
	s.turn = mine.next
	mine.next++
	w.acquire(s, s.turn)
	return true
}

// giveBack releases every key that has a token.
func (r *run) giveBack(tokens []uint64) {
	<-r.everyone(func(w *worker) {
		mine := w.share(len(tokens))
		w.pump(func(s *slot, reply *wire.Reply, _ time.Duration) bool {
			if reply != nil {
				if f := faultOf(reply); f != faultNone {
					w.fail(f, 1)
				}
			}
			for mine.next < mine.end && tokens[mine.next] == 0 {
				mine.next++
			}
			if mine.next == mine.end {
				return false
			}
			r.keys.put(&s.key, mine.next)
			s.release(tokens[mine.next])
			mine.next++
			return true
		})
	})
}
