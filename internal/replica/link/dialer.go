package link

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/internal/replica"
)

const (
	dialTimeout = 300 * time.Millisecond // for the connection alone
	minRedial   = 50 * time.Millisecond  // between two dials that were asked for, too
	maxRedial   = 300 * time.Millisecond

	// After a dial that was cut before it was answered: this much longer each
	// time, maxCuts times in a row.
	cutRedial = 2 * time.Millisecond
	maxCuts   = 5

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

	// Owned by run.
	due   time.Time // the next dial, if none is asked for before
	asked time.Time // the last one that was asked for
	cuts  int       // dials in a row that were cut
}

func newDialer(t *Transport, r replica.Rank, p Peer) *dialer {
	addr, _ := parseAddress(p.URL) // Validate did
	return &dialer{t: t, rank: r, name: p.Name, addr: addr, now: make(chan struct{}, 1), gone: make(chan struct{}, 1)}
}

// run is the dial loop.
func (d *dialer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if d.t.linked(d.rank) {
			select {
			case <-ctx.Done():
			case <-d.gone:
				d.due = time.Now().Add(d.backoff())
			}
			continue
		}
		if d.rest(ctx); ctx.Err() == nil && !d.t.linked(d.rank) {
			d.due = time.Now().Add(d.pause(d.once(ctx)))
		}
	}
}

// rest waits until a dial is due or asked for.
func (d *dialer) rest(ctx context.Context) {
	if sleep(ctx, time.Until(d.due), d.now) {
		sleep(ctx, time.Until(d.asked.Add(minRedial)), nil)
		d.asked = time.Now()
	}
}

// sleep waits for the time to pass. It is cut short by ctx or a signal, and says whether by the latter.
func sleep(ctx context.Context, t time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-early:
		return true
	}
	return false
}

// once dials, and sets off the link or tells of the failure, which it returns.
func (d *dialer) once(ctx context.Context) error {
	c, err := d.dial(ctx)
	switch {
	case err == nil:
		go func() {
			defer d.t.running.Done()
			c.run()
		}()
	case ctx.Err() == nil:
		d.t.report(lineDial, d.rank, d.name, d.addr.dial, err)
		no, isRefusal := errors.AsType[*refusal](err)
		d.t.step(replica.DialFailed{
			Peer: d.rank, Refused: errors.Is(err, syscall.ECONNREFUSED), Rejected: isRefusal && no.byPeer,
		})
	}
	return err
}

// pause is how long to wait after a dial. A process that is being killed may
// take a connection into its backlog for the last time: one that is cut before
// it was answered is tried again at once, a few times, for the refusal that
// tells that the process is gone.
func (d *dialer) pause(failed error) time.Duration {
	if cut(failed) && d.cuts < maxCuts {
		d.cuts++
		return time.Duration(d.cuts) * cutRedial
	}
	d.cuts = 0
	return d.backoff()
}

// cut says whether a connection stood and was ended without an answer.
func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
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
