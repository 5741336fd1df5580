package link

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// header carries the handshake, in the request and in its answer.
const header = "Holdfast-Peer"

// clockBound is how far a proof's time may be off. It leaves room for the hour
// that the machine allows, so that what is between is refused by the machine,
// on both sides and with both names.
const clockBound = 2 * time.Hour

// ServeHTTP accepts a link from a peer and serves it until it ends.
func (t *Transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !t.enter() {
		http.Error(w, "this node has no peer links now", http.StatusServiceUnavailable)
		return
	}
	defer t.running.Done()
	q, no := t.judge(r)
	if no != nil {
		t.turnAway(w, r, q, no)
		return
	}
	t.welcome(w, r, q)
}

// judge says whom a request is from, or why it is refused. Nothing is set up
// for it, and nothing that this node knows is told, until its mac is right.
func (t *Transport) judge(r *http.Request) (request, *refusal) {
	if len(r.Header.Values(header)) == 0 {
		return request{}, &refusal{status: http.StatusUnauthorized, text: "no proof of the cluster secret: only the nodes of the cluster speak here"}
	}
	b, err := decodeHeader(r.Header.Values(header), maxRequestBytes)
	if err != nil {
		return request{}, &refusal{status: http.StatusUnauthorized, text: err.Error()}
	}
	q, err := decodeRequest(b)
	if err != nil {
		return request{}, &refusal{status: http.StatusUnauthorized, text: fmt.Sprintf("header %s: the handshake %v", header, err)}
	}
	if !q.fits(t.cfg.Secrets()) {
		return q, &refusal{status: http.StatusUnauthorized, text: "the proof does not fit this node's cluster secret: give every node the same"}
	}
	apart := t.cfg.Wall().Sub(time.UnixMilli(q.at)).Abs()
	if apart > clockBound {
		return q, &refusal{status: http.StatusForbidden, text: fmt.Sprintf("the clocks of node %q and node %q are %v apart: an hour is the most; set them right",
			q.from, t.name, apart.Round(time.Second))}
	}
	if q.to != t.name && q.from != t.name {
		return q, &refusal{status: http.StatusForbidden, text: wrongNode(t.name, q.to, q.from)}
	}
	return q, nil
}

func (t *Transport) turnAway(w http.ResponseWriter, r *http.Request, q request, no *refusal) {
	t.report(lineAccept, t.rankOf(q.from), q.from, r.RemoteAddr, no)
	w.Header().Set("Connection", "close")
	if no.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", header)
	}
	http.Error(w, no.text, no.status)
}

// welcome upgrades a request that is proven and, after the second proofs, serves the link.
func (t *Transport) welcome(w http.ResponseWriter, r *http.Request, q request) {
	a := answer{name: t.name, raw: appendAnswer(nil, t.name)}
	w.Header().Set(header, encoding.EncodeToString(a.raw))
	h := &hijack{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled, OnPingReceived: ignorePing})
	if err != nil {
		t.report(lineAccept, t.rankOf(q.from), q.from, r.RemoteAddr, err) // answered by Accept
		return
	}
	raw := innermost(h.conn)
	tune(raw)
	c := t.newConn(ws, raw, q.from, t.rankOf(q.from), false)
	if !t.receive(c, q, a) {
		return
	}
	defer t.running.Done()
	c.run()
}

// receive takes a guest through the second proofs, and makes it a link or shows
// it out: it has its place among the guests for as long as either takes.
func (t *Transport) receive(c *conn, q request, a answer) bool {
	if !t.admit(c.rank, c.raw) {
		c.raw.Close()
		return false
	}
	defer t.dismiss(c.rank, c.raw)
	err := t.greet(c, q, a)
	if err == nil {
		err = t.add(c)
	}
	if err != nil {
		t.report(lineAccept, c.rank, c.name, c.remote(), err)
		c.refuse(err)
	}
	return err == nil
}

// greet is the acceptor's part of the second proofs. It answers only who has given its own.
func (t *Transport) greet(c *conn, q request, a answer) error {
	c.raw.SetDeadline(time.Now().Add(t.cfg.Timeout))
	secrets := t.cfg.Secrets()
	if len(secrets) == 0 {
		return errNoSecret
	}
	if err := c.readProof(secrets, diallerLabel, q.raw, a.raw); err != nil {
		return err
	}
	if err := c.ws.Write(context.Background(), websocket.MessageBinary, prove(secrets[0], acceptorLabel, q.raw, a.raw)); err != nil {
		return fmt.Errorf("write the second proof: %w", err)
	}
	return c.raw.SetDeadline(time.Time{})
}

// hijack remembers the connection that is taken over from the server.
type hijack struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack is http.Hijacker's.
func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = nc
	return nc, rw, err
}
