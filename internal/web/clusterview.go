package web

import (
	"net/http"
	"strings"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

type clusterBody struct {
	Active *activeNode  `json:"active"` // null where none is known
	Nodes  []memberBody `json:"nodes"`
}

// memberBody is a node as this one sees it.
type memberBody struct {
	Rank      int         `json:"rank"`
	Name      string      `json:"name"`
	Self      bool        `json:"self"`
	Alive     bool        `json:"alive"`
	Role      *string     `json:"role"` // null where it was never heard
	Addresses addresses   `json:"addresses"`
	Epoch     locks.Token `json:"epoch"`
	Seq       uint64      `json:"seq"`
	Synced    bool        `json:"synced"`
	Behind    uint64      `json:"behind"`
	Lag       seconds     `json:"lag"`
	Since     *time.Time  `json:"since"` // null where it is not known
	Reason    string      `json:"reason"`
	Refused   *string     `json:"refused"` // null where it and this node accept each other
}

func (s *Server) clusterView(*http.Request, struct{}) *answer {
	body := clusterBody{Active: activeOf(s.active()), Nodes: []memberBody{}}
	var line []string
	for _, m := range s.members() {
		body.Nodes = append(body.Nodes, memberOf(&m))
		state := m.Role.String()
		if !m.Alive {
			state = "not heard"
		}
		line = append(line, m.Name+" "+state)
	}
	return ok(body, strings.Join(line, ", "))
}

func memberOf(m *node.Member) memberBody {
	b := memberBody{
		Rank: m.Rank, Name: m.Name, Self: m.Self, Alive: m.Alive, Addresses: addressesOf(m.Native, m.HTTP),
		Epoch: m.Epoch, Seq: m.Seq, Synced: m.Synced, Behind: m.Behind, Lag: seconds(m.Lag), Reason: m.Reason,
	}
	if m.Role != 0 && m.Alive { // what a node was when it was last heard is not what it is
		role := m.Role.String()
		b.Role = &role
	}
	if !m.Since.IsZero() {
		since := m.Since.UTC()
		b.Since = &since
	}
	if m.Refused != "" {
		b.Refused = &m.Refused
	}
	return b
}

func activeOf(at node.ActiveNode) *activeNode {
	if at.Name == "" {
		return nil
	}
	return &activeNode{at.Name, addressesOf(at.Native, at.HTTP)}
}
