package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/replica"
)

// conn is one link, after the handshake. Its reader is its life: it tells the
// owner of the beginning and of the end, and ends the sender.
type conn struct {
	// Static after construction.
	t       *Transport
	owner   Owner
	id      replica.LinkID
	name    string       // of the peer
	rank    replica.Rank // of the peer; Nobody: not in the list, or this node's own name
	dialled bool         // by this node
	ws      *websocket.Conn
	raw     net.Conn // the socket below TLS and all wrappers: closing it blocks on nothing
	timeout time.Duration
	since   time.Time

	out  outbox
	gone atomic.Bool   // the owner does not know of it any more
	sent chan struct{} // closed when the sender has ended

	// Owned by the sender.
	piece []byte

	// Owned by the reader.
	buf     []byte
	control assembler
	bulk    assembler
}

// run serves the link until it ends, and waits for its sender.
func (c *conn) run() {
	stop := c.t.announceUp(c)
	go c.send()
	c.owner.Step(replica.LinkUp{Link: c.id, Dialled: c.dialled})
	err := c.read()
	c.raw.Close()
	c.end()
	c.out.fail(explain(err))
	c.ws.CloseNow()
	<-c.sent
	stop()
	c.t.announceDown(c)
	if no, ok := errors.AsType[*refusal](c.out.cause()); ok { // of the last step of the handshake, by a peer that is up here already
		c.t.report(lineAccept, c.rank, c.name, c.remote(), no)
	}
}

func (c *conn) remote() string { return c.raw.RemoteAddr().String() }

// end tells the owner, unless it knows, that the link is down.
func (c *conn) end() {
	if c.t.remove(c) {
		c.owner.Step(replica.LinkDown{Link: c.id})
	}
}

// read delivers messages until the connection breaks. What is not of this
// protocol ends the link; the peer is told why, so reading goes on for its goodbye.
func (c *conn) read() error {
	c.ws.SetReadLimit(pieceBytes + 1)
	c.buf = make([]byte, pieceBytes+3) // room to see that a message is too long
	for {
		piece, err := c.readPiece()
		if err == nil {
			err = c.take(piece)
		} else if !errors.Is(err, errGarbage) {
			return err
		}
		if err != nil {
			c.end()
			c.out.close(err.Error(), time.Now().Add(c.timeout))
		}
	}
}

var errGarbage = errors.New("not a peer's message")

// readPiece reads one WebSocket message. It lends it until the next.
func (c *conn) readPiece() ([]byte, error) {
	kind, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	n := 0
	for err == nil {
		var k int
		k, err = r.Read(c.buf[n:])
		n += k
	}
	if err != io.EOF {
		return nil, err
	}
	if kind != websocket.MessageBinary || n < 2 {
		return nil, fmt.Errorf("%w: it is text, or holds nothing", errGarbage)
	}
	return c.buf[:n], nil
}

// take delivers the messages that a piece completes.
func (c *conn) take(piece []byte) error {
	var into *assembler
	switch piece[0] {
	case controlPiece:
		into = &c.control
	case bulkPiece:
		into = &c.bulk
	default:
		return fmt.Errorf("%w: it begins with %d", errGarbage, piece[0])
	}
	return into.feed(piece[1:], func(msg []byte) {
		if !c.gone.Load() {
			c.owner.Step(replica.Received{Link: c.id, Data: msg})
		}
	})
}
