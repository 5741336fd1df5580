package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/cmd/holdfast/internal/session"
	"holdfast/wire"
)

const (
	// openAtOnce bounds the connections being opened at the same time, so that
	// the server's accept queue does not overflow.
	openAtOnce = 32
	// grace is how long the server has for its last answers once a run is over.
	grace = 10 * time.Second
	// lease outlives every run of handoff and held; a server with a lower
	// maximum gets that one.
	lease = 10 * time.Minute
)

// phase says whether an answer counts.
type phase uint32

const (
	warming phase = iota
	measuring
	ending // no new operations
)

// run is one workload being run.
type run struct {
	// Static after start.
	cfg     Config
	epoch   time.Time
	keys    keySpace
	leaseMS uint32
	workers []*worker

	phase atomic.Uint32
}

func (r *run) now() time.Duration { return time.Since(r.epoch) }
func (r *run) is(p phase) bool    { return phase(r.phase.Load()) == p }
func (r *run) end()               { r.phase.Store(uint32(ending)) }

// measure returns false if the run is ending already.
func (r *run) measure() bool {
	return r.phase.CompareAndSwap(uint32(warming), uint32(measuring))
}

// Run runs one workload. When ctx ends early, it stops loading, releases what
// it holds and returns what was measured until then, marked as partial.
// Failed requests are counted in the result; an error is returned for a run
// that could not take place.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, epoch: time.Now(), keys: newKeySpace()}
	defer r.close()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.limit())
	defer cancel()
	for _, w := range r.workers {
		defer w.conn.Guard(last)()
	}
	defer context.AfterFunc(ctx, func() {
		r.end()
		time.AfterFunc(grace, cancel) // harmless once the run has returned
	})()
	var result *Result
	switch cfg.Workload {
	case Closed, Pipelined:
		result = r.loop(ctx, cancel)
	case Handoff:
		result = r.handoff(ctx)
	case Held:
		result = r.held(ctx)
	default:
		return nil, fmt.Errorf("no workload %q", cfg.Workload)
	}
	result.Partial = ctx.Err() != nil
	return result, nil
}

// limit bounds a run whose server stops answering.
func (c *Config) limit() time.Duration {
	if c.Workload == Held {
		return lease
	}
	return c.Warmup + c.Duration + time.Minute
}

// open opens the connections, the first one alone to see whom it meets.
func (r *run) open(ctx context.Context) error {
	first, err := session.Dial(ctx, r.cfg.Addr, r.cfg.Session)
	if err != nil {
		return err
	}
	n := r.cfg.Connections
	if r.cfg.Workload == Handoff {
		n++
	}
	r.workers = append(r.workers, r.newWorker(0, first))
	hello := &first.Welcome
	if hello.Role != wire.RoleActive {
		return &NotActiveError{Node: hello.Node, Role: hello.Role, Active: hello.Active}
	}
	r.leaseMS = uint32(lease.Milliseconds())
	if hello.MaxLease > 0 {
		r.leaseMS = uint32(min(lease, hello.MaxLease).Milliseconds())
	}
	return r.openOthers(ctx, n-1)
}

func (r *run) openOthers(ctx context.Context, n int) error {
	conns := make([]*session.Conn, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	places := make(chan struct{}, openAtOnce)
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			conns[i], errs[i] = session.Dial(ctx, r.cfg.Addr, r.cfg.Session)
			<-places
		})
	}
	wg.Wait()
	for i, c := range conns {
		if c != nil {
			r.workers = append(r.workers, r.newWorker(i+1, c))
		}
	}
	if err := firstOf(errs); err != nil {
		return fmt.Errorf("connection %d of %d: %w", len(r.workers)+1, n+1, err)
	}
	return nil
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) newWorker(number int, c *session.Conn) *worker {
	return &worker{run: r, conn: c, slots: newSlots(number, r.cfg.Depth), hist: newHistogram()}
}

func (r *run) close() {
	for _, w := range r.workers {
		w.conn.Close()
	}
}

// NotActiveError says that the server named is not the one that grants locks.
type NotActiveError struct {
	Node   string
	Role   wire.Role
	Active string // native address; empty if unknown
}

func (e *NotActiveError) Error() string {
	if e.Active == "" {
		return fmt.Sprintf("node %s is %v and knows no active: try again later", e.Node, e.Role)
	}
	return fmt.Sprintf("node %s is %v: name the active, %s", e.Node, e.Role, e.Active)
}

// errAllEnded is why await returns when no connection has anything left to do.
var errAllEnded = errors.New("every connection has ended")

// await returns nil when after fires, errAllEnded once ended is closed and
// ctx's error when ctx ends. Meanwhile it reports progress.
func (r *run) await(ctx context.Context, after <-chan time.Time, ended <-chan struct{}) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-after:
			return nil
		case <-ended:
			return errAllEnded
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			r.progress()
		}
	}
}

func (r *run) progress() {
	if r.cfg.OnProgress == nil {
		return
	}
	p := Progress{Workload: r.cfg.Workload, Elapsed: r.now()}
	for _, w := range r.workers {
		p.Operations += w.done.Load()
		p.Errors += w.failed.Load()
	}
	r.cfg.OnProgress(p)
}

// everyone runs f for each worker in a goroutine of its own; ended is closed
// when all have returned.
func (r *run) everyone(f func(w *worker)) (ended <-chan struct{}) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Go(func() { f(w) })
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}
