package web

import (
	"net/http"
	"time"

	"holdfast/internal/locks"
)

type releaseInput struct {
	key   string
	token locks.Token
}

var releaseSchema = schema[releaseInput]{
	need("key", func(in *releaseInput) *string { return &in.key }, parseKey),
	need("token", func(in *releaseInput) *locks.Token { return &in.token }, parseToken),
}

type doneBody struct {
	Status string `json:"status"`
	Key    string `json:"key"`
}

func (s *Server) release(r *http.Request, in releaseInput) *answer {
	c := locks.Command{Op: locks.OpRelease, Key: []byte(in.key), Token: in.token}
	return s.operate(r, in.key, c, func(*locks.Reply) *answer {
		return ok(doneBody{"released", in.key}, "released")
	})
}

type extendInput struct {
	key   string
	token locks.Token
	lease time.Duration
}

var extendSchema = schema[extendInput]{
	need("key", func(in *extendInput) *string { return &in.key }, parseKey),
	need("token", func(in *extendInput) *locks.Token { return &in.token }, parseToken),
	take("lease", func(in *extendInput) *time.Duration { return &in.lease }, parseSeconds),
}

type extendedBody struct {
	Status string  `json:"status"`
	Key    string  `json:"key"`
	Lease  seconds `json:"lease"`
}

func (s *Server) extend(r *http.Request, in extendInput) *answer {
	// Stay: this request's session ends with it, and must not take the grant along.
	c := locks.Command{Op: locks.OpExtend, Flags: locks.Stay, Key: []byte(in.key), Token: in.token, Lease: in.lease}
	return s.operate(r, in.key, c, func(rep *locks.Reply) *answer {
		left := seconds(rep.Lease)
		return ok(extendedBody{"extended", in.key, left}, "extended to "+left.String()+" seconds")
	})
}

type cancelInput struct {
	key    string
	ticket locks.Ticket
}

var cancelSchema = schema[cancelInput]{
	need("key", func(in *cancelInput) *string { return &in.key }, parseKey),
	need("ticket", func(in *cancelInput) *locks.Ticket { return &in.ticket }, parseTicket),
}

type statusBody struct {
	Status string `json:"status"`
}

func (s *Server) cancel(r *http.Request, in cancelInput) *answer {
	c := locks.Command{Op: locks.OpCancelTicket, Key: []byte(in.key), Ticket: in.ticket}
	return s.operate(r, in.key, c, func(*locks.Reply) *answer {
		return ok(statusBody{"cancelled"}, "cancelled")
	})
}

// operate runs a command that is answered at once, and lets done word a success.
func (s *Server) operate(r *http.Request, key string, c locks.Command, done func(*locks.Reply) *answer) *answer {
	rep, answered := s.ask(r.Context(), s.source(r, ""), c)
	switch {
	case !answered:
		return fail(codeUnavailable, "the node did not answer in time: whether it was done is not known").with("Retry-After", "1")
	case outcomes[rep.Code].code != "":
		return s.refuse(r, key, &rep)
	}
	return done(&rep)
}

func stopping() *answer {
	return fail(codeUnavailable, "this node is stopping: repeat the request, at another node if there is one").with("Retry-After", "1")
}
