package client

import "holdfast/wire"

// pushed acts on what a node said by itself. Pushes that this client does not
// know are ignored.
func (c *Client) pushed(n *conn, p *push) {
	switch p.op {
	case wire.OpLost:
		reason := lostReason(p.reason)
		switch l := c.watch.lost(p.token, reason); {
		case l == nil:
		case reason == LostExpired:
			l.expire()
		default:
			l.lose(reason)
		}
	case wire.OpMoved:
		c.moved(n, p.addr, p.node)
	}
}

func lostReason(r wire.Reason) Reason {
	switch r {
	case wire.ReasonExpired:
		return LostExpired
	case wire.ReasonForced:
		return LostForced
	case wire.ReasonSuperseded:
		return LostSuperseded
	}
	return LostDenied
}
