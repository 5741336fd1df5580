package web

import (
	"net/http"

	"holdfast/internal/node"
)

type healthInput struct{ verbose bool }

var healthSchema = schema[healthInput]{
	take("verbose", func(in *healthInput) *bool { return &in.verbose }, parseSwitch),
}

// check is one thing that a health answer looked at.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

type healthBody struct {
	Status string  `json:"status"`
	Role   string  `json:"role"`
	Checks []check `json:"checks,omitempty"`
}

// health answers 200 where good says so of the node's status. Asking for the
// status at all shows that the node's mutex is free: where it is not, the probe
// times out, and rightly.
func (s *Server) health(good func(*node.Status) check) func(*http.Request, healthInput) *answer {
	return func(_ *http.Request, in healthInput) *answer {
		st := s.node.Status()
		c := good(&st)
		role := st.Role.String()
		var shown []check
		if in.verbose {
			shown = []check{{"serving", true, "the lock table answers"}, c}
		}
		if c.OK {
			return ok(healthBody{"ok", role, shown}, "ok")
		}
		return failWith(codeUnavailable, c.Detail, facts{Role: role, Checks: shown}).with("Retry-After", "1")
	}
}

// alive is true of every node that can say so; what its peers do is no matter.
func alive(st *node.Status) check { return check{"alive", true, isRole(st)} }

// ready is true of the active and of a synced standby: were it the active's
// alone, a rolling update would wait for ever.
func ready(st *node.Status) check {
	if st.Role == node.Standby && !st.Synced {
		return check{"ready", false, "this node is standby, and not in step with an active"}
	}
	return check{"ready", st.Role == node.Active || st.Role == node.Standby, isRole(st)}
}

func inRole(want node.Role) func(*node.Status) check {
	return func(st *node.Status) check { return check{want.String(), st.Role == want, isRole(st)} }
}

func isRole(st *node.Status) string { return "this node is " + st.Role.String() }
