package web

import (
	"cmp"
	"fmt"
	"net/http"

	"holdfast/internal/locks"
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

// audit tells of what an operator did, or wanted to: in the log and in the feed.
func (s *Server) audit(r *http.Request, did node.Notice) {
	did.Type, did.Who, did.From = node.NoticeOperator, identity(r).Name, s.remote(r)
	s.node.Note(did)
	attrs := []any{"event", "operator", "result", did.Result, "remote", did.From, "identity", did.Who}
	for _, one := range [][2]string{{"key", did.Key}, {"to", did.Node}, {"reason", did.Why}} {
		if one[1] != "" {
			attrs = append(attrs, one[0], one[1])
		}
	}
	if did.Token != 0 {
		attrs = append(attrs, "token", uint64(did.Token))
	}
	s.log.Info("operator: "+did.Action, attrs...)
}

type forceInput struct {
	key    string
	token  locks.Token
	reason string
}

var forceSchema = schema[forceInput]{
	need("key", func(in *forceInput) *string { return &in.key }, parseKey),
	need("token", func(in *forceInput) *locks.Token { return &in.token }, parseToken),
	need("reason", func(in *forceInput) *string { return &in.reason }, parseReason),
}

func (s *Server) forceRelease(r *http.Request, in forceInput) *answer {
	did := node.Notice{Action: "force-release", Key: in.key, Token: in.token, Why: in.reason}
	return s.asOperator(r, did, locks.Command{Op: locks.OpForce, Key: []byte(in.key), Token: in.token}, "released")
}

type removeInput struct {
	key    string
	ticket locks.Ticket
	reason string
}

var removeSchema = schema[removeInput]{
	need("key", func(in *removeInput) *string { return &in.key }, parseKey),
	need("ticket", func(in *removeInput) *locks.Ticket { return &in.ticket }, parseTicket),
	need("reason", func(in *removeInput) *string { return &in.reason }, parseReason),
}

func (s *Server) removeWaiter(r *http.Request, in removeInput) *answer {
	did := node.Notice{Action: "remove-waiter", Key: in.key, Why: in.reason}
	return s.asOperator(r, did, locks.Command{Op: locks.OpRemoveWaiter, Key: []byte(in.key), Ticket: in.ticket}, "removed")
}

// asOperator runs a command whose success is worded done, and tells of it
// whatever becomes of it.
func (s *Server) asOperator(r *http.Request, did node.Notice, c locks.Command, done string) *answer {
	a := s.operate(r, did.Key, c, func(*locks.Reply) *answer { return ok(doneBody{done, did.Key}, done) })
	did.Result = done
	if p, failed := a.body.(*problem); failed {
		did.Result = p.Code
	} else if a.status == http.StatusTemporaryRedirect {
		did.Result = "moved"
	}
	s.audit(r, did)
	return a
}

type handoffInput struct{ to string }

var handoffSchema = schema[handoffInput]{
	take("to", func(in *handoffInput) *string { return &in.to }, parseLabel),
}

func (s *Server) handoff(r *http.Request, in handoffInput) *answer {
	result := s.handOver(in.to)
	s.audit(r, node.Notice{Action: "handoff", Node: in.to, Result: cmp.Or(handoffResults[result], codeInternal)})
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

// handoffResults are the words for the feed.
var handoffResults = map[node.HandoffResult]string{
	node.HandoffBegun: "begun", node.HandoffNotActive: "moved", node.HandoffNotSynced: codeNotSynced,
	node.HandoffInProgress: codeInProgress, node.HandoffNoSuchNode: codeBadRequest,
}

func notInStep(to string) string {
	if to == "" {
		return "no other node is in step with this one"
	}
	return fmt.Sprintf("%s is not in step with this node", to)
}
