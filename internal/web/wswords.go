package web

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// wsAnswer is the answer to one request. What the case has no use for is left out.
type wsAnswer struct {
	ID     uint64 `json:"id,omitempty"` // 0: the client gave none
	Status string `json:"status"`
	Code   string `json:"code,omitempty"` // error: a code of the table of problems
	Detail string `json:"detail,omitempty"`
	facts
	Lease  *seconds    `json:"lease,omitempty"`
	Ticket *ticketText `json:"ticket,omitempty"`
	Waited *seconds    `json:"waited,omitempty"`
}

type (
	wsPush struct {
		Push string `json:"push"`
	}
	wsPositionPush struct {
		Push     string `json:"push"`
		ID       uint64 `json:"id"`
		Position uint32 `json:"position"`
	}
	wsLostPush struct {
		Push   string      `json:"push"`
		Key    string      `json:"key"`
		Token  locks.Token `json:"token"`
		Reason string      `json:"reason"`
	}
	wsContendedPush struct {
		Push    string      `json:"push"`
		Key     string      `json:"key"`
		Token   locks.Token `json:"token"`
		Waiters uint32      `json:"waiters"`
	}
	wsMovedPush struct {
		Push   string    `json:"push"`
		Active *wsActive `json:"active"` // null: none is known
	}
	wsActive struct {
		Native string `json:"native"`
		HTTP   string `json:"http"` // "": no address is known that would not lead back
	}
)

// wsText puts a message into JSON.
func wsText(body any) []byte {
	text, err := marshal(body)
	if err != nil {
		panic(fmt.Sprintf("web: %T in JSON: %v", body, err)) // they are our own types
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// words puts an item into JSON, as of now.
func (c *socket) words(i *wsItem) []byte {
	if i.text != nil {
		return i.text
	}
	r := &i.reply
	if r.Lease > 0 {
		r.Lease = max(r.Lease-c.srv.node.Now().Sub(i.at), 0)
	}
	switch r.Code {
	case locks.Moved:
		return wsText(wsMovedPush{"moved", c.activeElsewhere()})
	case locks.Lost:
		return wsText(wsLostPush{"lost", string(r.Key), r.Token, r.Reason.String()})
	case locks.ContendedPush:
		return wsText(wsContendedPush{"contended", string(r.Key), r.Token, r.Waiters})
	}
	return wsText(c.srv.wsReply(r))
}

// wsReply words the answer of the table to a request.
func (s *Server) wsReply(r *locks.Reply) *wsAnswer {
	a := &wsAnswer{ID: r.Ref, Status: r.Code.String(), facts: facts{Key: string(r.Key)}}
	lease, waited, ticket := seconds(r.Lease), seconds(r.Waited), ticketText(r.Ticket)
	switch r.Code {
	case locks.Granted:
		a.Token, a.Lease, a.Waited = r.Token, &lease, &waited
		if !r.Ticket.IsZero() {
			a.Ticket = &ticket
		}
	case locks.Extended:
		a.Lease = &lease
	case locks.Released, locks.NotHolder:
	case locks.NotGranted, locks.Cancelled:
		a.Status, a.facts = "not-granted", notGranted(string(r.Key), r).body.(*problem).facts
	default:
		return wsProblem(r.Ref, s.refuse(nil, string(r.Key), r))
	}
	return a
}

// wsProblem words a refusal.
func wsProblem(id uint64, refusal *answer) *wsAnswer {
	p := refusal.body.(*problem)
	return &wsAnswer{ID: id, Status: "error", Code: p.Code, Detail: p.Detail, facts: p.facts}
}

// cancelledLocked words the answer to the oldest cancel that has none.
func (c *socket) cancelledLocked(r *locks.Reply) []byte {
	id := c.cancels[0]
	c.cancels = c.cancels[1:]
	if r.Code == locks.CancelDone {
		return wsText(wsAnswer{ID: id, Status: "cancelled"})
	}
	return wsText(wsProblem(id, fail(codeNoSuchTicket, fmt.Sprintf("no acquire of the id %d waits on this connection", r.Ref))))
}

// queuedLocked notes that an acquire waits, and words its place. Nil: it is told
// later, as the client does not keep up.
func (c *socket) queuedLocked(r *locks.Reply) []byte {
	p := c.pending[r.Ref]
	p.queued = true
	if c.laggingLocked() {
		return nil
	}
	p.place = r.Position
	return wsText(wsPositionPush{"position", r.Ref, r.Position})
}

// activeElsewhere says where the client should go, nil where nobody knows.
func (c *socket) activeElsewhere() *wsActive {
	at := c.srv.active()
	if at.Name == "" || at.Here {
		return nil
	}
	to := &wsActive{Native: at.Native}
	if target := c.srv.reachable(c.req, at); target != nil {
		to.HTTP = target.String()
	}
	return to
}

// stops says whether this process is about to end.
func (s *Server) stops() bool { return s.node.Status().Role == node.Stopping }

// shorten cuts text to at most limit bytes of valid UTF-8.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.ToValidUTF8(text[:limit], "")
}
