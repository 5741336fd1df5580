package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// trip is the way of one operation from node to node until one serves it.
type trip struct {
	ctx     context.Context // ends it
	until   instant         // so does this; 0 = none
	patient bool            // failures do not end it

	hops   int     // redirects followed in a row
	pauses int     // made in a row
	since  instant // since when no node has served; 0 = none has been looked for in vain
	drops  int     // connections that were lost with the request
	seen   uint64  // Client.failures when they began to count
}

const (
	// maxHops is how many redirects are followed before a pause.
	maxHops = 3
	// noActiveTime is how long nodes may answer without serving before an
	// operation gives up: several times what a failover takes.
	noActiveTime = 10 * time.Second
	// A request that was under way for so long before it failed starts a new
	// story: it was not what ended the connection, and the redirect is not one of
	// a loop.
	steadyDropped = time.Second
	steadyMoved   = 5 * time.Second

	dropPause    = 20 * time.Millisecond
	firstPause   = 50 * time.Millisecond
	longestPause = 200 * time.Millisecond
)

func (c *Client) newTrip(ctx context.Context) trip {
	return trip{ctx: ctx, seen: c.failures.Load()}
}

// noActiveError lists the nodes that were tried. It is an ErrNoActive, and
// ErrUnauthorized where every node refused the client.
type noActiveError struct {
	tried   string
	refusal error // or nil
}

func (e *noActiveError) Error() string { return ErrNoActive.Error() + ": " + e.tried }

func (e *noActiveError) Is(target error) bool { return target == ErrNoActive }

func (e *noActiveError) Unwrap() error { return e.refusal }

// route returns a usable connection, waiting for one where there is none. Its
// error is ErrClosed or a *noActiveError.
func (c *Client) route(t *trip) (*conn, error) {
	for {
		if n := c.pick(); n != nil {
			return n, nil
		}
		if err := c.look(t); err != nil {
			return nil, err
		}
	}
}

// look waits for the roster to change, or until it is time to ask standbys
// again. It fails when the trip is to be given up.
func (c *Client) look(t *trip) error {
	now := c.clock.now()
	if t.since == 0 {
		t.since = now
	}
	c.mu.Lock()
	changed := c.changed
	answering := c.answeringLocked()
	err := c.verdictLocked(t, now, answering)
	c.mu.Unlock()
	if err != nil || len(*c.usable.Load()) > 0 {
		return err
	}
	var limit time.Duration
	if answering {
		limit = t.nextPause()
	}
	switch c.sleep(t, changed, limit) {
	case ended:
		return c.noActive()
	case timeUp:
		c.suspect()
	}
	return nil
}

// verdictLocked says why t is to be given up, if it is: every registered
// connection has been tried, or those that stand have not served for long.
func (c *Client) verdictLocked(t *trip, now instant, answering bool) error {
	if c.closing.Load() {
		return ErrClosed
	}
	refusal := c.refusalLocked()
	switch {
	case refusal != nil:
	case t.patient:
		return nil
	case answering && now.sub(t.since) < noActiveTime:
		return nil
	case !answering && c.failures.Load()-t.seen < uint64(c.configured):
		return nil
	}
	return &noActiveError{tried: c.triedLocked(), refusal: refusal}
}

// answeringLocked says whether any node is connected.
func (c *Client) answeringLocked() bool {
	for _, m := range c.members {
		if m.conn != nil {
			return true
		}
	}
	return false
}

func (c *Client) noActive() error {
	if c.closing.Load() {
		return ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &noActiveError{tried: c.triedLocked(), refusal: c.refusalLocked()}
}

// redirect acts on an answer that sends t elsewhere, and pauses where that
// leads nowhere.
func (c *Client) redirect(t *trip, res *result) error {
	c.count.redirects.Add(1)
	c.emit(Event{Kind: EventMoved, Addr: res.addr, Node: res.node})
	c.moved(res.conn, res.addr, res.node)
	t.hops++
	if t.hops <= maxHops && (res.addr != "" || c.pick() != nil) {
		return nil
	}
	return c.pause(t)
}

// pause lets a moment pass before nodes that do not serve are asked again.
func (c *Client) pause(t *trip) error {
	now := c.clock.now()
	t.hops = 0
	if t.since == 0 {
		t.since = now
	}
	c.mu.Lock()
	err := c.verdictLocked(t, now, true)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if c.sleep(t, nil, t.nextPause()) == ended {
		return c.noActive()
	}
	c.suspect()
	return nil
}

// dropped counts a connection that was lost with the request of t, and fails
// once as many have been as are registered. Connections to one node often end
// together: the next try comes a moment later, so that it is not wasted on one
// whose end is just about to be noticed.
func (c *Client) dropped(t *trip) error {
	t.drops++
	if !t.patient && t.drops >= c.configured || c.sleep(t, nil, dropPause) == ended {
		return c.noActive()
	}
	return nil
}

// steady forgets past troubles if the request, sent at sent, was under way for
// long before it came to res.
func (c *Client) steady(t *trip, res *result, sent instant) {
	long := steadyMoved
	if res.err == errDropped {
		long = steadyDropped
	}
	if c.clock.now().sub(sent) >= long {
		fresh := c.newTrip(t.ctx)
		fresh.until, fresh.patient = t.until, t.patient
		*t = fresh
	}
}

// nextPause is longer each time, and no two clients' are the same.
func (t *trip) nextPause() time.Duration {
	d := min(firstPause<<min(t.pauses, 8), longestPause)
	t.pauses++
	return time.Duration((0.8 + 0.4*rand.Float64()) * float64(d))
}

// wakeup is what ended a sleep.
type wakeup uint8

const (
	woken wakeup = iota
	timeUp
	ended // the trip, or the client
)

// sleep waits for changed to be closed, or for d (0 = without bound).
func (c *Client) sleep(t *trip, changed <-chan struct{}, d time.Duration) wakeup {
	up := timeUp
	if t.until != 0 {
		left := t.until.sub(c.clock.now())
		if left <= 0 {
			return ended
		}
		if d == 0 || left <= d {
			d, up = left, ended
		}
	}
	var alarm <-chan time.Time
	if d != 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-changed:
		return woken
	case <-alarm:
		return up
	case <-t.ctx.Done():
		return ended
	case <-c.closed:
		return ended
	}
}
