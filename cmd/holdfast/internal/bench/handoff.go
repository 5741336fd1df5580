package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/wire"
)

const (
	minRounds = 3
	// settle lets every waiter's goroutine come to rest in its read before the
	// first release, so that a round measures hand-offs and not their start.
	settle = 20 * time.Millisecond
)

// line is one round of handoff: workers[0] holds, the others wait in order.
type line struct {
	// Static during the round.
	waiters []*worker

	released atomic.Int64 // when the last release was sent, since the epoch
	inside   atomic.Int32 // holders at this moment
	twice    atomic.Int32 // grants while another held, or with a token that is not higher
	token    atomic.Uint64
	granted  atomic.Int32 // grants so far

	order   []int           // waiters by grant
	latency []time.Duration // by waiter; 0 = not granted
}

// handoff runs rounds until the time is over.
func (r *run) handoff(ctx context.Context) *Result {
	var order Order
	var drained time.Duration
	start := r.now()
	reported := start
	for round := 0; ctx.Err() == nil && (round < minRounds || r.now()-start < r.cfg.Duration); round++ {
		took, err := r.round(ctx, &order)
		if err != nil {
			r.workers[0].breakOff(err, 1)
			break
		}
		drained += took
		if now := r.now(); now-reported >= time.Second {
			reported = now
			r.progress()
		}
	}
	result := r.result(drained)
	result.Order = &order
	return result
}

// round lines all waiters up, lets the key go through their hands and returns
// how long that took.
func (r *run) round(ctx context.Context, order *Order) (time.Duration, error) {
	holder := r.workers[0]
	token, err := holder.hold()
	if err != nil {
		return 0, err
	}
	l := &line{}
	l.token.Store(token)
	for _, w := range r.workers[1:] {
		if ctx.Err() != nil {
			break
		}
		if err := w.enqueue(); err != nil {
			err = fmt.Errorf("waiter %d: %w", len(l.waiters)+1, err)
			return 0, errors.Join(err, holder.letGo(token))
		}
		l.waiters = append(l.waiters, w)
	}
	l.order = make([]int, len(l.waiters))
	l.latency = make([]time.Duration, len(l.waiters))
	var wg sync.WaitGroup
	for i, w := range l.waiters {
		wg.Go(func() { w.passOn(l, i) })
	}
	time.Sleep(settle)
	start := r.now()
	l.released.Store(int64(start))
	err = holder.letGo(token)
	wg.Wait()
	took := r.now() - start
	l.count(order)
	return took, err
}

// hold acquires the key that is handed on.
func (w *worker) hold() (token uint64, err error) {
	s := &w.slots[0]
	w.acquire(s, 0)
	if err := w.call(s); err != nil {
		return 0, err
	}
	if w.reply.Status != wire.StatusGranted {
		return 0, fmt.Errorf("the key of the line was not granted: %v", w.reply)
	}
	return w.reply.Token, nil
}

// enqueue sends the acquire and a ping after it. A server reads one
// connection's requests in order, so the pong proves that this waiter stands
// in line before the next one is sent.
func (w *worker) enqueue() error {
	s := &w.slots[0]
	w.acquire(s, 0)
	s.req.Flags, s.req.WaitMS = 0, w.run.leaseMS
	w.conn.Queue(&s.req)
	w.conn.Queue(&wire.Request{Op: wire.OpPing, ID: s.req.ID})
	if _, err := w.receive(); err != nil {
		return err
	}
	if w.reply.Op != wire.OpPing {
		return fmt.Errorf("a waiter was answered before the release: %v", w.reply)
	}
	return nil
}

// passOn waits for the grant and releases at once.
func (w *worker) passOn(l *line, i int) {
	s, err := w.receive()
	if err != nil {
		w.breakOff(err, 1)
		return
	}
	if f := faultOf(&w.reply); f != faultNone {
		w.fail(f, 1)
		return
	}
	token := w.reply.Token
	l.latency[i] = w.run.now() - time.Duration(l.released.Load())
	l.order[l.granted.Add(1)-1] = i
	if l.inside.Add(1) != 1 || l.token.Swap(token) >= token {
		l.twice.Add(1)
	}
	s.release(token)
	l.inside.Add(-1)
	l.released.Store(int64(w.run.now()))
	if err := w.call(s); err != nil {
		w.breakOff(err, 1)
		return
	}
	if f := faultOf(&w.reply); f != faultNone {
		w.fail(f, 1)
	}
	w.done.Add(1)
}

func (w *worker) letGo(token uint64) error {
	s := &w.slots[0]
	s.release(token)
	if err := w.call(s); err != nil {
		return err
	}
	if f := faultOf(&w.reply); f != faultNone {
		w.fail(f, 1)
	}
	return nil
}

// call sends one request and waits for its answer, which is then in w.reply.
func (w *worker) call(s *slot) error {
	w.conn.Queue(&s.req)
	_, err := w.receive()
	return err
}

// count adds a round's measurements to the workers and its order to the total.
func (l *line) count(o *Order) {
	for i, d := range l.latency {
		if d > 0 {
			l.waiters[i].record(d)
			l.waiters[i].measured++
		}
	}
	o.Rounds++
	o.TwoHolders += int(l.twice.Load())
	o.add(l.order[:l.granted.Load()])
}
