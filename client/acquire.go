package client

import (
	"context"
	"errors"
	"math"
	"time"

	"holdfast/wire"
)

// Acquire takes the lock on key, waiting in the server's queue until it is
// granted, ctx ends or WithWait has passed. A connection that drops meanwhile
// costs nothing: the attempt keeps its place and goes on elsewhere. After an
// error nothing is held, and nothing will be: a grant that came too late is
// given back.
//
// The errors are ErrNotAcquired (and the context's, if that ended the wait),
// ErrNoActive, ErrClosed, ErrUnauthorized, ErrMismatch, a *ServerError, or one
// that says which argument is wrong.
func (c *Client) Acquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.acquire(ctx, key, spec{patient: c.cfg.patient}, opts)
}

// TryAcquire takes the lock on key if it is free now. If it is not, the error
// is ErrNotAcquired. It waits for a connection if there is none yet, as long
// as ctx allows.
func (c *Client) TryAcquire(ctx context.Context, key string, opts ...AcquireOption) (*Lock, error) {
	return c.acquire(ctx, key, spec{flags: wire.FlagTry}, opts)
}

func (c *Client) acquire(ctx context.Context, key string, sp spec, opts []AcquireOption) (*Lock, error) {
	if err := sp.set(key, opts); err != nil {
		return nil, failed("acquire", key, "", err)
	}
	if ctx.Err() != nil {
		return nil, failed("acquire", key, "", append([]error{ErrNotAcquired}, contextCauses(ctx)...)...)
	}
	c.count.acquires.Add(1)
	a := acquisition{c: c, key: key, spec: sp, trip: c.newTrip(ctx)}
	a.begin()
	l, err := a.run()
	if err != nil {
		c.count.refused.Add(1)
	}
	return l, err
}

// acquisition is one acquire on its way.
type acquisition struct {
	c    *Client
	key  string
	spec spec
	trip trip

	wait    instant // when the wait is over; 0 = never
	fromCtx bool    // it is ctx that says so
	repeat  bool    // the request may have been sent before
	asked   bool    // a node has had the request
	lost    bool    // a sending was lost with its connection
	open    bool    // an earlier sending may still be granted, or hold its place
}

// begin draws the ticket and fixes the deadline, once for all tries.
func (a *acquisition) begin() {
	if a.repeat = !a.spec.ticket.IsZero(); !a.repeat {
		a.spec.ticket = a.c.tickets.next()
	}
	if a.spec.flags&wire.FlagTry != 0 {
		return
	}
	if a.spec.wait != 0 {
		a.wait = a.c.clock.now().add(a.spec.wait)
	}
	if deadline, ok := a.trip.ctx.Deadline(); ok {
		if t := a.c.clock.of(deadline); a.wait == 0 || t < a.wait {
			a.wait, a.fromCtx = t, true
		}
	}
	a.trip.until = a.wait
	a.trip.patient = a.spec.patient && a.wait == 0
}

// run tries until there is an outcome.
func (a *acquisition) run() (*Lock, error) {
	for {
		n, err := a.c.route(&a.trip)
		if err != nil {
			return nil, a.giveUp(err)
		}
		res, err := a.try(n)
		if err != nil {
			return nil, a.giveUp(err)
		}
		if res.err == nil && res.status != wire.StatusMoved {
			return a.conclude(&res)
		}
		if err := a.goOn(&res); err != nil {
			return nil, a.giveUp(err)
		}
	}
}

// errWaitOver and errStopped are what try reports when there is no answer to be had.
var (
	errWaitOver = errors.New("the wait is over")
	errStopped  = errors.New("the context has ended")
)

// answerTime is how much later than the end of the wait the server's word of
// it may come before the client stops waiting by itself.
const answerTime = time.Second

// try sends the request on n and waits for its answer.
func (a *acquisition) try(n *conn) (res result, err error) {
	c := a.c
	now := c.clock.now()
	waitMS, over := a.waitMS(now)
	if over && a.asked && a.trip.since != 0 { // the wait ended while a node that serves was looked for
		return res, c.noActive()
	}
	if over {
		return res, errWaitOver
	}
	cl := c.calls.get(a.key)
	cl.leaseMS = a.spec.leaseMS
	if cl.leaseMS == 0 {
		cl.leaseMS = n.welcome.defaultLeaseMS
	}
	flags := a.spec.flags
	if a.repeat {
		flags |= wire.FlagRetry
	}
	r := wire.Request{
		Op: wire.OpAcquire, Flags: flags, LeaseMS: a.spec.leaseMS, WaitMS: waitMS,
		Slots: a.spec.slots, Ticket: a.spec.ticket,
	}
	if err := n.send(cl, &r, now); err != nil {
		c.calls.put(cl)
		return c.unsent(n, err)
	}
	a.repeat, a.asked, a.open = true, true, true
	var limit time.Duration
	if a.wait != 0 && !a.fromCtx {
		limit = a.wait.add(answerTime).sub(now)
	}
	if !cl.wait(a.trip.ctx.Done(), limit) {
		return a.stop(n, cl)
	}
	res = cl.res
	c.calls.put(cl)
	if res.status != wire.StatusGranted {
		c.steady(&a.trip, &res, now)
	}
	return res, nil
}

// unsent turns the error of a send into a result: where it was the
// connection's, the next one is tried.
func (c *Client) unsent(n *conn, err error) (result, error) {
	switch err {
	case ErrClosed:
		return result{}, ErrClosed
	case errBusy:
		return result{conn: n, err: errBusy}, nil
	}
	c.left(n)
	return result{conn: n, err: errUnsent}, nil
}

// stop gives the request up. It returns the answer if that won the race.
func (a *acquisition) stop(n *conn, cl *call) (result, error) {
	d, now := a.debt(), a.c.clock.now()
	if n.withdraw(cl, d, now) {
		a.open = false          // d sees to it
		d.due(now.add(tryTime)) // in case the connection is dead and nobody has noticed
		switch {
		case a.trip.ctx.Err() != nil:
			return result{}, errStopped
		case a.c.closing.Load():
			return result{}, ErrClosed
		}
		return result{}, errWaitOver
	}
	d.settle()
	res := cl.res
	a.c.calls.put(cl)
	return res, nil
}

// waitMS is what is left of the wait, rounded up: 0 would mean forever.
func (a *acquisition) waitMS(now instant) (ms uint32, over bool) {
	if a.wait == 0 {
		return 0, false
	}
	left := a.wait.sub(now)
	if left <= 0 {
		return 0, true
	}
	left = (left + time.Millisecond - 1) / time.Millisecond
	if left > math.MaxUint32 {
		return 0, false // a context's deadline beyond what the wire can say: ctx ends the wait
	}
	return uint32(left), false
}

// conclude turns the node's answer into the caller's.
func (a *acquisition) conclude(res *result) (*Lock, error) {
	a.open = false
	switch res.status {
	case wire.StatusGranted:
		return a.c.granted(a, res)
	case wire.StatusCancelled:
		return nil, failed("acquire", a.key, "the server withdrew the request", ErrNotAcquired)
	}
	if a.spec.flags&wire.FlagTry != 0 {
		return nil, failed("acquire", a.key, "taken", ErrNotAcquired)
	}
	return nil, a.giveUp(errWaitOver)
}

// goOn prepares the next try after one that was not served. It fails if there
// is to be none.
func (a *acquisition) goOn(res *result) error {
	c, t := a.c, &a.trip
	if res.err == nil {
		if a.spec.flags&wire.FlagTry != 0 {
			a.open = a.lost // this one has no place that another node could know of
		}
		return c.redirect(t, res)
	}
	if res.err == errUnsent {
		return nil
	}
	if res.err == errDropped {
		a.lost = true
		c.count.retries.Add(1)
		return c.dropped(t)
	}
	se, ok := res.err.(*ServerError)
	if ok && se.Code == wire.CodeUnavailable {
		if err := c.pause(t); err != nil {
			return se
		}
		return nil
	}
	if res.err != errBusy { // which nobody has seen
		a.open = false
	}
	return res.err
}

// giveUp makes the error of an acquire that ends without an answer, and sees to
// it that what was sent does not end in a grant.
func (a *acquisition) giveUp(err error) error {
	if a.open {
		a.debt().due(a.c.clock.now())
	}
	var causes []error
	detail := ""
	switch {
	case err == errWaitOver || err == errStopped:
		causes = append(causes, ErrNotAcquired)
		if a.spec.wait != 0 && !a.fromCtx && err == errWaitOver {
			detail = "not granted within " + a.spec.wait.String()
		}
	case a.asked && errors.Is(err, ErrNoActive) && (a.over() || a.trip.ctx.Err() != nil):
		causes = append(causes, ErrNotAcquired, err)
	default:
		causes = append(causes, err)
	}
	switch {
	case a.trip.ctx.Err() != nil:
		causes = append(causes, contextCauses(a.trip.ctx)...)
	case a.fromCtx && (err == errWaitOver || a.over()):
		causes = append(causes, context.DeadlineExceeded)
	}
	return failed("acquire", a.key, detail, causes...)
}

// over says whether the wait has passed.
func (a *acquisition) over() bool { return a.wait != 0 && a.c.clock.now() >= a.wait }
