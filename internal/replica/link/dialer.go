package link

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/internal/replica"
)

const (
	dialTimeout = 300 * time.Millisecond // for the connection alone
	minRedial   = 50 * time.Millisecond  // between the beginnings of two dials, asked for or not
	maxRedial   = 300 * time.Millisecond

	// steady is how long a link must have stood for the next dials to come quickly
	// again. One that is refused once it is up must not be dialled without end at
	// the shortest pace.
	steady = time.Second
)

// dialer dials one peer whenever no link to it stands.
type dialer struct {
	// Static after construction.
	t    *Transport
	rank replica.Rank
	name string
	addr address

	now   chan struct{} // one slot: dial, whatever the backoff says
	gone  chan struct{} // one slot: a link to the peer went
	tries atomic.Int32  // since a link was steady
}

func newDialer(t *Transport, r replica.Rank, p Peer) *dialer {
	addr, _ := parseAddress(p.URL) // Validate did
	return &dialer{t: t, rank: r, name: p.Name, addr: addr, now: make(chan struct{}, 1), gone: make(chan struct{}, 1)}
}

// run is the dial loop.
func (d *dialer) run(ctx context.Context) {
	var began, due time.Time // of the last dial, of the next one
	for d.rest(ctx, began.Add(minRedial), due) {
		if d.t.linked(d.rank) {
			select {
			case <-ctx.Done():
				return
			case <-d.gone:
			}
			due = time.Now().Add(d.backoff())
			continue
		}
		began = time.Now()
		if c, err := d.dial(ctx); err == nil {
			go func() {
				defer d.t.running.Done()
				c.run()
			}()
		} else if ctx.Err() == nil {
			d.failed(err)
		}
		due = time.Now().Add(d.backoff())
	}
}

// rest waits until a dial is due, or is asked for and not too early; false: ctx has ended.
func (d *dialer) rest(ctx context.Context, earliest, due time.Time) bool {
	return sleep(ctx, time.Until(earliest), nil) && sleep(ctx, time.Until(due), d.now)
}

// sleep ends with ctx, and is false then; or with the time, or a signal.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-early:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// backoff is the pause before the next dial: at random from minRedial to a
// bound that doubles with each try, so that two nodes do not dial in step.
func (d *dialer) backoff() time.Duration {
	tries := d.tries.Load()
	most := min(2*minRedial<<tries, maxRedial)
	d.tries.Store(min(tries+1, 8)) // what a link that was lost just now stores may be lost: no matter
	return minRedial + rand.N(most-minRedial)
}

// lost is called when a link to the peer is gone.
func (d *dialer) lost(lasted time.Duration) {
	if lasted >= steady {
		d.tries.Store(0)
	}
	signal(d.gone)
}

// failed tells of a dial that brought no link.
func (d *dialer) failed(err error) {
	d.t.report(lineDial, d.rank, d.name, d.addr.dial, err)
	d.t.step(replica.DialFailed{Peer: d.rank, Refused: errors.Is(err, syscall.ECONNREFUSED)})
}
