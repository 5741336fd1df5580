package web

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"holdfast/internal/node"
)

// routes builds the handler of the whole port. Order matters: who may ask comes
// before what is asked, so that nobody learns from a refusal of his input what
// he may not know.
func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.observe, timeBody, secureHeaders, s.checkMark, s.checkHost, s.checkOrigin)
	r.NotFound(s.notFound)
	r.MethodNotAllowed(s.methodNotAllowed(r))

	s.public(r)
	s.dashboard(r)
	r.Group(func(r chi.Router) {
		r.Use(s.authenticate)
		get(r, "/v1/node", handle(s, nothing, s.nodeView))
		get(r, "/v1/cluster", handle(s, nothing, s.clusterView))
		r.Group(func(r chi.Router) {
			r.Use(s.onlyOperators, s.onlyActive)
			r.Post("/v1/admin/handoff", handle(s, handoffSchema, s.handoff))
			r.Post("/v1/admin/force-release", handle(s, forceSchema, s.forceRelease))
			r.Post("/v1/admin/remove-waiter", handle(s, removeSchema, s.removeWaiter))
		})
		r.Group(func(r chi.Router) {
			r.Use(s.onlyActive)
			r.Post("/v1/acquire", s.acquire)
			r.Post("/v1/release", handle(s, releaseSchema, s.release))
			r.Post("/v1/extend", handle(s, extendSchema, s.extend))
			r.Post("/v1/cancel", handle(s, cancelSchema, s.cancel))
		})
		r.Group(func(r chi.Router) {
			r.Use(s.orLocal)
			get(r, "/v1/lock", handle(s, lockSchema, s.lockView))
			get(r, "/v1/locks", handle(s, listSchema, s.listing))
		})
	})
	return r
}

// public has what needs no authentication.
func (s *Server) public(r chi.Router) {
	get(r, "/livez", handle(s, healthSchema, s.health(alive)))
	get(r, "/readyz", handle(s, healthSchema, s.health(ready)))
	get(r, "/healthz", handle(s, healthSchema, s.health(ready)))
	get(r, "/active", handle(s, healthSchema, s.health(inRole(node.Active))))
	get(r, "/standby", handle(s, healthSchema, s.health(inRole(node.Standby))))
	get(r, "/v1/version", handle(s, nothing, s.version))
	get(r, "/v1/ws", s.webSocket) // it authenticates itself: browsers can't set headers
	get(r, "/v1/openapi.json", s.openAPI)
	get(r, "/problems/{code}", s.problemPage)
}

// get routes GET, and with it HEAD.
func get(r chi.Router, path string, h http.HandlerFunc) {
	r.Get(path, h)
	r.Head(path, h)
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.send(w, r, fail(codeNotFound, "nothing is served under this path: /v1/openapi.json lists what is"))
}

// methodNotAllowed answers for known paths; chi also calls it for methods that it
// never heard of, whatever the path.
func (s *Server) methodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			if routes.Match(chi.NewRouteContext(), m, r.URL.Path) {
				allowed = append(allowed, m)
			}
		}
		if allowed == nil {
			s.notFound(w, r)
			return
		}
		list := strings.Join(allowed, ", ")
		s.send(w, r, fail(codeMethod, "this path takes "+list).with("Allow", list))
	}
}
