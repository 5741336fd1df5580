package client

import (
	"net"
	"time"
)

// Where nodes say that the active is.

// maxFollowed bounds the connections to addresses that nodes have named; at
// the bound no more are opened and the configured addresses are asked instead.
const maxFollowed = 8

// leadToLocked makes the node at addr, called node, the active if it is
// connected, and otherwise has it dialled. Of two ways to the same node a
// configured one is preferred: addr may be meant for another network.
func (c *Client) leadToLocked(addr, node string) {
	m := c.findLocked(addr, node)
	switch {
	case m == nil:
		c.followLocked(addr)
	case m.conn != nil:
		c.active = m.conn.name()
		for _, other := range c.members {
			if other.conn != nil && other.conn.name() == c.active {
				other.conn.standby = false
			}
		}
	default:
		select {
		case m.kick <- struct{}{}:
		default:
		}
	}
}

// minKick keeps an address that nodes name, but which cannot be reached, from
// being dialled over and over. It is the time for which a client may miss a
// node that has just restarted and was made the active at once.
const minKick = 250 * time.Millisecond

// findLocked returns the member that leads to a node: by name where it is
// known, configured before followed, connected before not; else by address.
func (c *Client) findLocked(addr, node string) (best *member) {
	rank := func(m *member) (r int) {
		switch {
		case node != "" && m.node == node:
			r = 4
		case m.addr == addr:
			r = 4
		default:
			return 0
		}
		if m.conn != nil {
			r += 2
		}
		if !m.followed {
			r++
		}
		return r
	}
	high := 0
	for _, m := range c.members {
		if r := rank(m); r > high {
			best, high = m, r
		}
	}
	return best
}

// followLocked opens a connection to an address that a node has named.
func (c *Client) followLocked(addr string) {
	if c.down || c.cfg.follow == FollowConfigured || len(c.members)-c.configured >= maxFollowed {
		return
	}
	if _, _, err := net.SplitHostPort(addr); err != nil || len(addr) > maxAddrBytes {
		return
	}
	if until, known := c.unreachable[addr]; known && c.clock.now() < until {
		return
	}
	c.startLocked(&member{c: c, addr: addr, followed: true, kick: make(chan struct{}, 1)})
}

// maxAddrBytes is the longest host name with a port.
const maxAddrBytes = 253 + 6

// removeFollowed takes a followed member out once it has ended. An address
// that was dialled in vain is not dialled again at once, whoever names it.
func (c *Client) removeFollowed(m *member, served bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.members {
		if other == m {
			c.members = append(c.members[:i], c.members[i+1:]...)
			break
		}
	}
	now := c.clock.now()
	for addr, until := range c.unreachable {
		if until <= now {
			delete(c.unreachable, addr)
		}
	}
	if !served && len(c.unreachable) < maxFollowed {
		c.unreachable[m.addr] = now.add(minKick)
	}
	c.relistLocked()
}
