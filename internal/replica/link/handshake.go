package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/replica"
)

// refusal says why a link is not wanted, by this node or by the peer. It is
// worth a line in the log, unlike a connection that broke.
type refusal struct {
	byPeer bool
	status int // of the answer before the upgrade
	text   string
}

func (r *refusal) Error() string { return r.text }

var (
	errNoSecret = &refusal{text: "no cluster secret is set"}
	errProof    = &refusal{text: "the second proof does not fit this node's cluster secret"}
	errStopping = errors.New("this node stops")
)

func wrongNode(is, meant, dialler string) string {
	return fmt.Sprintf("that is node %q, not %q: correct the address of %q in the peers list of %q", is, meant, meant, dialler)
}

// newConn makes a link of a WebSocket whose handshake has begun.
func (t *Transport) newConn(ws *websocket.Conn, raw net.Conn, name string, rank replica.Rank, dialled bool) *conn {
	return &conn{
		t: t, name: name, rank: rank, dialled: dialled, ws: ws, raw: raw, timeout: t.cfg.Timeout, since: time.Now(),
		out: newOutbox(), sent: make(chan struct{}),
		control: assembler{max: maxControlBytes}, bulk: assembler{max: maxBulkBytes},
	}
}

// readProof reads the other side's second proof and judges it.
func (c *conn) readProof(secrets []string, label string, parts ...[]byte) error {
	c.ws.SetReadLimit(macBytes)
	kind, mac, err := c.ws.Read(context.Background())
	if err != nil {
		return fmt.Errorf("read the second proof: %w", explain(err))
	}
	if kind != websocket.MessageBinary || !fits(secrets, mac, label, parts...) {
		return errProof
	}
	return nil
}

// refuse ends a connection that does not become a link, and says why, within
// what is left of the handshake's time.
func (c *conn) refuse(why error) {
	c.raw.SetDeadline(time.Now().Add(c.timeout))
	c.ws.Close(websocket.StatusPolicyViolation, reason(why.Error()))
	c.raw.Close()
	c.ws.CloseNow()
}

// explain makes of a close frame what the peer said with it.
func explain(err error) error {
	said, ok := errors.AsType[websocket.CloseError](err)
	switch {
	case !ok:
		return err
	case said.Code == websocket.StatusPolicyViolation:
		return &refusal{byPeer: true, text: said.Reason}
	}
	return fmt.Errorf("closed by the peer: %q", said.Reason)
}

// ignorePing leaves pings unanswered: this protocol has none, and a flood of
// them shall not become one of pongs.
func ignorePing(context.Context, []byte) bool { return false }

// innermost finds the socket below TLS and other wrappers.
func innermost(nc net.Conn) net.Conn {
	for {
		w, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return nc
		}
		nc = w.NetConn()
	}
}
