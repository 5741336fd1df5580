package native

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"holdfast/internal/locks"
	"holdfast/wire"
)

// hello handles what comes before the hello was accepted.
func (c *conn) hello(r *wire.Request) ending {
	if r.Op != wire.OpHello {
		return c.misused(r, fmt.Sprintf("%v before the hello, which must come first", r.Op))
	}
	if err := r.Check(); err != nil {
		c.answerError(r, wire.CodeBadArgument, err.Error())
		return goesOn
	}
	var identity string
	if authenticate := c.srv.cfg.Authenticate; authenticate != nil {
		var ok bool
		if identity, ok = authenticate(r.Auth); !ok {
			c.srv.log.limited(slog.LevelWarn, "authentication failed", "remote", c.remote)
			return c.lastWord(unauthenticated, &wire.Reply{
				Op: wire.OpHello, Status: wire.StatusError, ID: r.ID, Code: wire.CodeUnauthenticated, Message: []byte("auth: not a token of this node"),
			})
		}
	}
	c.in.greeted = true
	c.in.deadline(time.Time{})
	c.open(r, identity)
	return goesOn
}

// open welcomes the client and begins its session, in this order: the welcome
// is the first thing that a client reads, and whatever the node has to say
// comes after it. What it had to say in between is made up for.
func (c *conn) open(r *wire.Request, identity string) {
	st, active := c.srv.cfg.Node.Status(), c.srv.active()
	c.answer(welcome(&st, active, c.srv.cfg.Software, r.ID))
	c.room = c.srv.cfg.MaxPending
	c.sess = c.srv.cfg.Node.Open(locks.Origin{
		Owner: string(r.Owner), Remote: c.remote, Transport: "native", Identity: identity,
	}, c)
	if active.Here && !c.srv.active().Here {
		c.Push(&locks.Reply{Code: locks.Moved})
	}
}

// httpMethods are the first four bytes of HTTP requests; PRI begins HTTP/2.
var httpMethods = []string{"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI "}

// stranger looks at the first bytes of a connection. No frame begins like any
// of these, as its length would be out of range.
func (c *conn) stranger() ending {
	b := c.in.bytes()
	if len(b) < 4 || b[0] == 0 {
		return goesOn
	}
	line := "This port speaks Holdfast's native protocol"
	if hint := c.srv.cfg.HTTPHint; hint != "" {
		line += ", HTTP is served at " + hint
	}
	line += ".\n"
	if b[0] == 0x16 && b[1] == 0x03 { // a TLS handshake record
		c.last = []byte(line)
		return wrongProtocol
	}
	if slices.Contains(httpMethods, string(b[:4])) {
		c.last = []byte("HTTP/1.1 400 Bad Request\r\n\r\n" + line)
		return wrongProtocol
	}
	return goesOn
}
