package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

const (
	wsHelloTimeout = 10 * time.Second // for the hello, where it has to prove something
	wsBeat         = 20 * time.Second // between heartbeats, and between pings
	wsMissedPings  = 2                // so many in a row, and the client is taken for gone

	// wsEndTimeout bounds the last answers, the closing handshake and whatever
	// write is under way: afterwards the connection is cut.
	wsEndTimeout = 5 * time.Second

	// Where Config says nothing, as in the native protocol.
	wsOutputLimit = 1 << 20
	wsMaxPending  = 65_536
)

// socket is one WebSocket. Its reader is its life: it takes one message after
// the other, and when it ends it closes the session, and waits for the writer,
// the pulse and the watch, which it has started. Whoever else finds that the
// socket must end says why (end); the writer then says goodbye, and the reader
// finds the connection closed.
//
// Lock order: node.mu, then socket.mu. Neither is held over I/O.
type socket struct {
	// Static after construction.
	srv  *Server
	ws   *websocket.Conn
	raw  net.Conn
	req  *http.Request // the handshake
	ctx  context.Context
	stop context.CancelFunc
	wake chan struct{} // one slot: there is something to write, or the end

	// Owned by the reader.
	id       *Identity // nil: not known yet
	owner    string
	greeted  bool          // something has come: too late for a hello
	sess     *node.Session // nil until the first lock operation
	watching *watching     // nil: nothing is watched

	mu      sync.Mutex // guards what follows
	why     wsEnding   // the first reason given
	reason  string     // in words, for the client
	killer  *time.Timer
	pending map[uint64]*wsPending // acquires that are not answered
	cancels []uint64              // ids of cancels; the table's answers to them come in this order
	out     wsOutput
}

// wsPending is an acquire that is not answered.
type wsPending struct {
	queued bool
	place  uint32 // as told last
}

func newSocket(s *Server, r *http.Request, ws *websocket.Conn, raw net.Conn, id *Identity) *socket {
	c := &socket{srv: s, ws: ws, raw: raw, req: r, id: id, wake: make(chan struct{}, 1), pending: make(map[uint64]*wsPending)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// serve is the reader.
func (c *socket) serve() {
	c.ws.SetReadLimit(maxMessageBytes)
	var children sync.WaitGroup
	children.Go(c.write)
	children.Go(c.pulse)
	patience := time.AfterFunc(wsHelloTimeout, func() { c.end(wsNoHello) })
	for c.goesOn() {
		if c.id != nil {
			patience.Stop()
		}
		kind, text, err := c.ws.Read(context.Background())
		switch {
		case errors.Is(err, websocket.ErrMessageTooBig):
			c.end(wsTooBig)
		case err != nil:
			c.end(wsGone)
		case kind != websocket.MessageText:
			c.misuse(errors.New("messages are text, not binary"))
		default:
			c.take(text)
		}
	}
	patience.Stop()
	c.finish(&children)
}

// finish ends the socket: what waits leaves the queue, and grants that the client
// did not get are given back.
func (c *socket) finish(children *sync.WaitGroup) {
	if c.sess != nil {
		end(c.sess)
	}
	c.stop()
	c.unwatch()
	children.Wait()
	c.raw.Close()
	c.mu.Lock()
	c.killer.Stop()
	lost := c.out.unsentGrants()
	why := c.why
	c.mu.Unlock()
	for _, r := range lost {
		c.giveBack(&r)
	}
	c.srv.log.Debug("websocket ended", "event", "ws", "remote", c.srv.remote(c.req), "reason", why.String())
}

func (c *socket) giveBack(r *locks.Reply) {
	defer crash()
	c.sess.Undelivered(r.Key, r.Token)
}

// end says why the socket must end, and wakes the writer. It does not block, and
// does nothing once a reason is given.
func (c *socket) end(why wsEnding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(why, why.String())
}

// misuse ends the socket for what the client has sent.
func (c *socket) misuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(wsMisuse, err.Error())
}

func (c *socket) endLocked(why wsEnding, reason string) {
	if c.why != wsGoesOn {
		return
	}
	c.why, c.reason = why, reason
	patience := wsEndTimeout
	if wsEndings[why].code == 0 {
		patience = 0
	}
	c.killer = time.AfterFunc(patience, func() { c.raw.Close() })
	c.Flush()
}

func (c *socket) goesOn() bool { return c.ending() == wsGoesOn }

func (c *socket) ending() wsEnding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// Flush wakes the writer.
func (c *socket) Flush() {
	select {
	case c.wake <- struct{}{}:
	default: // it was told already and has not looked yet
	}
}

// pulse finds out whether the client is still there.
func (c *socket) pulse() {
	every := time.NewTicker(wsBeat)
	defer every.Stop()
	for missed := 0; missed < wsMissedPings; {
		select {
		case <-every.C:
		case <-c.ctx.Done():
			return
		}
		if c.ping() {
			missed = 0
		} else {
			missed++
		}
	}
	c.end(wsSilent)
}

func (c *socket) ping() bool {
	ctx, cancel := context.WithTimeout(c.ctx, wsBeat)
	defer cancel()
	return c.ws.Ping(ctx) == nil
}
