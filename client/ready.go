package client

import (
	"context"

	"holdfast/wire"
)

// Ready waits until the active is connected. Its error is ctx's, with an
// ErrNoActive that lists the nodes; ErrUnauthorized if every node refuses the
// client; or ErrClosed.
func (c *Client) Ready(ctx context.Context) error {
	t := c.newTrip(ctx)
	t.patient = true
	for {
		n, err := c.route(&t)
		if err != nil {
			return withContext(ctx, err)
		}
		if c.isActive(n) {
			return nil
		}
		if err := c.probe(&t, n); err != nil {
			return withContext(ctx, err)
		}
	}
}

// isActive says whether n is known to lead to the active.
func (c *Client) isActive(n *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.m.conn == n && n.name() == c.active
}

// probeKey is a key that nobody holds with token 0, which is never given.
const probeKey = "holdfast-ready"

// probe finds out whether n leads to the active, which a node tells only in the
// hello and to those who want something: it releases what is not held.
func (c *Client) probe(t *trip, n *conn) error {
	began := c.clock.now()
	res, err := c.ask(n, probeKey, &wire.Request{Op: wire.OpRelease}, t.ctx.Done(), began, began.add(tryTime))
	switch {
	case err != nil:
		return err
	case t.ctx.Err() != nil:
		return c.noActive()
	case res.err == nil && res.status == wire.StatusMoved:
		return c.redirect(t, &res)
	case res.err == nil || refused(res.err):
		c.serves(n)
		return nil
	}
	return c.pause(t)
}

// refused says whether err is the answer of a node that serves, but not this
// key to this client.
func refused(err error) bool {
	se, ok := err.(*ServerError)
	return ok && se.Code == wire.CodeNotAllowed
}

// serves notes that n leads to the active, whatever its node said before: of two requests that a node answers around
// its promotion, one is told that it is a standby and the next is served.
func (c *Client) serves(n *conn) {
	c.mu.Lock()
	changed := n.m.conn == n && c.active != n.name()
	if changed {
		c.active = n.name()
		for _, m := range c.members {
			if m.conn != nil && m.conn.name() == c.active {
				m.conn.standby = false
			}
		}
		c.relistLocked()
	}
	c.mu.Unlock()
	if changed {
		c.activeChanged(n.m.addr, n.name())
	}
}
