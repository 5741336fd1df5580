package web

import (
	"fmt"
	"net/http"

	"holdfast/internal/locks"
)

const (
	defaultListed = 100  // waiters or rows, where the request does not say
	mostListed    = 1000 // the most of them that it may ask for
	mostHolders   = 1000 // of one key
)

type lockInput struct {
	key     string
	waiters *int
	local   bool // ask this node, whether or not it is the active
}

var lockSchema = schema[lockInput]{
	need("key", func(in *lockInput) *string { return &in.key }, parseKey),
	take("waiters", func(in *lockInput) **int { return &in.waiters }, optional(parseInt(mostListed))),
	take("local", func(in *lockInput) *bool { return &in.local }, parseBool),
}

type lockBody struct {
	Key          string       `json:"key"`
	State        string       `json:"state"`
	Mode         *string      `json:"mode"` // null where nobody holds it
	Slots        uint16       `json:"slots"`
	Holders      []holderBody `json:"holders"`
	HoldersTotal int          `json:"holders_total"`
	Waiters      []waiterBody `json:"waiters"`
	WaitersTotal int          `json:"waiters_total"`
}

type holderBody struct {
	Owner   string       `json:"owner"`
	Remote  string       `json:"remote"`
	Token   *locks.Token `json:"token"` // null for those who may not see it
	Lease   seconds      `json:"lease"`
	HeldFor seconds      `json:"held_for"`
	Shared  bool         `json:"shared"`
}

type waiterBody struct {
	Position   int         `json:"position"`
	Owner      string      `json:"owner"`
	Remote     string      `json:"remote"`
	WaitingFor seconds     `json:"waiting_for"`
	Wait       *seconds    `json:"wait"`   // null = no bound
	Ticket     *ticketText `json:"ticket"` // null = it has none, or may not be seen
	Connected  bool        `json:"connected"`
}

func (s *Server) lockView(r *http.Request, in lockInput) *answer {
	listed := defaultListed
	if in.waiters != nil {
		listed = *in.waiters
	}
	v, _, _ := s.node.View([]byte(in.key), mostHolders, listed)
	now := s.node.Now()
	open := identity(r).Operate
	body := lockBody{
		Key: in.key, State: stateOf(v.Mode), Mode: modeOf(v.Mode), Slots: v.Slots,
		Holders: make([]holderBody, len(v.Holders)), HoldersTotal: v.HoldersTotal,
		Waiters: make([]waiterBody, len(v.Waiters)), WaitersTotal: v.WaitersTotal,
	}
	for i := range v.Holders {
		body.Holders[i] = holderOf(&v.Holders[i], now, open)
	}
	for i := range v.Waiters {
		body.Waiters[i] = waiterOf(&v.Waiters[i], now, open)
	}
	return ok(body, fmt.Sprintf("%s: %d hold it, %d wait for it", body.State, v.HoldersTotal, v.WaitersTotal))
}

func stateOf(m locks.Mode) string {
	if m == locks.ModeFree {
		return "free"
	}
	return "held"
}

func modeOf(m locks.Mode) *string {
	if m == locks.ModeFree {
		return nil
	}
	name := m.String()
	return &name
}

// holderOf shows a holder. Its token is all that one needs to release it, so
// it is shown in full or not at all; so are tickets.
func holderOf(h *locks.HolderView, now locks.Time, open bool) holderBody {
	b := holderBody{
		Owner: h.Origin.Owner, Remote: h.Origin.Remote, Lease: seconds(h.Lease),
		HeldFor: seconds(now.Sub(h.Since)), Shared: h.Shared,
	}
	if open {
		b.Token = &h.Token
	}
	return b
}

func waiterOf(w *locks.WaiterView, now locks.Time, open bool) waiterBody {
	b := waiterBody{
		Position: w.Position, Owner: w.Origin.Owner, Remote: w.Origin.Remote,
		WaitingFor: seconds(now.Sub(w.Since)), Connected: w.Connected,
	}
	if w.Wait != 0 {
		left := seconds(w.Wait)
		b.Wait = &left
	}
	if open && !w.Ticket.IsZero() {
		t := ticketText(w.Ticket)
		b.Ticket = &t
	}
	return b
}
