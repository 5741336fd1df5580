package client

import (
	"fmt"
	"net"
	"strings"
	"time"

	"holdfast/wire"
)

// Who is connected and who serves. The roster is the Client's fields under mu;
// callers read only the list of usable connections, which is replaced as a
// whole whenever something changes.

// maxFollowed bounds the connections to addresses that nodes have named; at
// the bound no more are opened and the configured addresses are asked instead.
const maxFollowed = 8

// pick returns the next usable connection, or nil.
func (c *Client) pick() *conn {
	usable := *c.usable.Load()
	if len(usable) == 0 {
		return nil
	}
	return usable[c.turn.Add(1)%uint64(len(usable))]
}

// relistLocked finds the usable connections anew and tells whoever waits for a
// change: those to the active, or while none is known to be it, all that are
// not known to be standbys.
func (c *Client) relistLocked() {
	var actives, candidates []*conn
	for _, m := range c.members {
		switch {
		case m.conn == nil || m.conn.standby:
		case m.conn.name() == c.active:
			actives = append(actives, m.conn)
		default:
			candidates = append(candidates, m.conn)
		}
	}
	if len(actives) > 0 {
		candidates = actives
	}
	c.usable.Store(&candidates)
	c.known.Store(c.active != "")
	close(c.changed)
	c.changed = make(chan struct{})
}

// attempt notes that m is about to be dialled.
func (c *Client) attempt(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.unkick()
}

// unkick forgets that m was asked to dial: it does, or has.
func (m *member) unkick() {
	select {
	case <-m.kick:
	default:
	}
}

// adopt keeps nc where Close finds it; false means that Close has been.
func (c *Client) adopt(m *member, nc net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return false
	}
	m.nc = nc
	return true
}

// attemptFailed notes that m could not be connected.
func (c *Client) attemptFailed(m *member, err error) {
	c.mu.Lock()
	first := m.err == nil || m.err.Error() != err.Error()
	m.nc, m.err = nil, err
	c.failures.Add(1)
	c.relistLocked()
	c.mu.Unlock()
	if first && c.ctx.Err() == nil {
		c.cfg.log.Warn("cannot connect", "addr", m.addr, "err", err)
	}
}

// joined takes n in.
func (c *Client) joined(n *conn) {
	w := &n.welcome
	c.mu.Lock()
	n.m.conn, n.m.node, n.m.err, n.m.since = n, w.node, nil, time.Now()
	n.standby = w.role != wire.RoleActive
	n.m.unkick()
	active := c.active
	if !n.standby {
		c.active = n.name()
	} else if c.active == "" && w.active != "" {
		c.leadToLocked(w.active, w.activeNode)
	}
	changed := c.active != active
	c.relistLocked()
	c.mu.Unlock()
	c.count.connects.Add(1)
	c.cfg.log.Info("connected", "addr", n.m.addr, "node", w.node, "role", w.role)
	c.emit(Event{Kind: EventConnected, Addr: n.m.addr, Node: w.node})
	if changed {
		c.activeChanged(n.m.addr, n.name())
	}
}

// left takes n out. With the last connection to the active goes what was known
// about standbys: one of them may be promoted.
func (c *Client) left(n *conn) {
	c.mu.Lock()
	if n.m.conn != n {
		c.mu.Unlock()
		return
	}
	n.m.conn, n.m.nc, n.m.err, n.m.since = nil, nil, n.why, time.Now()
	if n.name() == c.active && !c.connectedLocked(c.active) {
		c.active = ""
		c.suspectLocked()
	}
	c.relistLocked()
	c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.cfg.log.Info("disconnected", "addr", n.m.addr, "node", n.welcome.node, "err", n.why)
	}
	c.emit(Event{Kind: EventDisconnected, Addr: n.m.addr, Node: n.welcome.node, Err: n.why})
}

func (c *Client) connectedLocked(name string) bool {
	for _, m := range c.members {
		if m.conn != nil && m.conn.name() == name {
			return true
		}
	}
	return false
}

// suspectLocked forgets who is a standby.
func (c *Client) suspectLocked() {
	for _, m := range c.members {
		if m.conn != nil {
			m.conn.standby = false
		}
	}
}

// suspect forgets who is a standby, so that all are asked again.
func (c *Client) suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active == "" {
		c.suspectLocked()
		c.relistLocked()
	}
}

// moved acts on the word of n that it is not the active, and who is.
func (c *Client) moved(n *conn, addr, node string) {
	c.mu.Lock()
	before := c.active
	if n.m.conn == n { // else it speaks of the past
		c.standDownLocked(n.name())
	}
	if c.active == "" && addr != "" {
		c.leadToLocked(addr, node)
	}
	after := c.active
	c.relistLocked()
	c.mu.Unlock()
	if after != before && after != "" {
		c.activeChanged(addr, after)
	}
	c.adrift(n)
}

// standDownLocked notes that the node called name is not the active, whichever
// of its connections said so.
func (c *Client) standDownLocked(name string) {
	if c.active == name {
		c.active = ""
	}
	for _, m := range c.members {
		if m.conn != nil && m.conn.name() == name {
			m.conn.standby = true
		}
	}
}

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

// startLocked adds m and lets it run.
func (c *Client) startLocked(m *member) {
	c.members = append(c.members, m)
	c.wg.Add(1)
	go m.run(c.ctx)
}

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

// triedLocked lists the configured addresses with what is wrong with each.
func (c *Client) triedLocked() string {
	var b strings.Builder
	seen := make(map[string]bool)
	for _, m := range c.members {
		if m.followed || seen[m.addr] {
			continue
		}
		seen[m.addr] = true
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", m.addr, m.stateLocked())
	}
	return b.String()
}

// stateLocked says in a few words what became of the last attempt.
func (m *member) stateLocked() string {
	switch {
	case m.conn != nil && m.conn.standby:
		return "a standby"
	case m.conn != nil:
		return "connected"
	case m.err != nil:
		return m.err.Error()
	}
	return "not connected yet"
}

// refusalLocked returns the refusal if every configured address refuses us.
func (c *Client) refusalLocked() (refusal error) {
	for _, m := range c.members {
		if m.followed {
			continue
		}
		if m.conn != nil || m.err == nil || !isRefusal(m.err) {
			return nil
		}
		refusal = m.err
	}
	return refusal
}
