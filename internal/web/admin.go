package web

import (
	"fmt"
	"net/http"

	"holdfast/internal/node"
)

// onlyOperators refuses who may not change how the cluster runs.
func (s *Server) onlyOperators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !identity(r).Operate {
			s.send(w, r, fail(codeNotAllowed, "this needs an auth token with the scope operate"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

type handoffInput struct{ to string }

var handoffSchema = schema[handoffInput]{
	take("to", func(in *handoffInput) *string { return &in.to }, parseLabel),
}

func (s *Server) handoff(r *http.Request, in handoffInput) *answer {
	result := s.handOver(in.to)
	s.log.Info("hand-off asked for", "event", "handoff", "to", in.to, "begun", result == node.HandoffBegun,
		"remote", s.remote(r), "identity", identity(r).Name)
	switch result {
	case node.HandoffBegun:
		return &answer{status: http.StatusAccepted, body: statusBody{"begun"}, plain: "begun"}
	case node.HandoffNotActive:
		return s.moved(r)
	case node.HandoffNotSynced:
		return fail(codeNotSynced, notInStep(in.to))
	case node.HandoffInProgress:
		return fail(codeInProgress, "the service is being moved, or is frozen for another reason, already: look at /v1/cluster and repeat the request")
	case node.HandoffNoSuchNode:
		return badInput(&inputError{"to", fmt.Sprintf("%q is no other node of this cluster: /v1/cluster lists them", in.to)})
	}
	return fail(codeInternal, fmt.Sprintf("the node answered %d to a hand-off", result))
}

func notInStep(to string) string {
	if to == "" {
		return "no other node is in step with this one"
	}
	return fmt.Sprintf("%s is not in step with this node", to)
}
