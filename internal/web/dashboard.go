package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/internal/web/ui"
	"holdfast/web/static"
)

// dashboard adds the pages for people, if there are to be any.
func (s *Server) dashboard(r chi.Router) {
	if s.cfg.UI.Mode == ui.Off {
		return
	}
	cfg := s.cfg.UI
	cfg.Node = s.node
	cfg.Viewer = func(r *http.Request) ui.Viewer {
		id := identity(r)
		return ui.Viewer{Name: id.Name, Operate: id.Operate}
	}
	if cfg.ActiveURL == nil {
		cfg.ActiveURL = s.activeURL
	}
	cfg.Ask = func(r *http.Request, c locks.Command) (locks.Reply, bool) {
		return s.ask(r.Context(), s.source(r, ""), c)
	}
	if cfg.Audit == nil {
		cfg.Audit = s.auditPage
	}
	pages := ui.New(cfg)
	get(r, "/static/{name}", func(w http.ResponseWriter, r *http.Request) {
		if !static.Serve(w, r, chi.URLParam(r, "name")) {
			s.notFound(w, r)
		}
	})
	r.Group(func(r chi.Router) {
		r.Use(s.authenticatePages(pages))
		pages.Routes(r)
	})
}

// authenticatePages is authenticate for browsers, which read a page.
func (s *Server) authenticatePages(pages *ui.UI) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if s.cfg.Authenticate == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			given := secret(r)
			id, ok := s.cfg.Authenticate(given)
			if given == "" || !ok {
				if given != "" {
					s.logDenied(r)
				}
				pages.Unauthenticated(w, r)
				return
			}
			next.ServeHTTP(w, withIdentity(r, id))
		})
	}
}

// activeURL is where a browser that reached this node by r reaches the active:
// of several addresses the one by which it reaches this machine, or this network.
func (s *Server) activeURL(r *http.Request) string {
	targets := s.targets(r, s.active())
	if len(targets) == 0 {
		return ""
	}
	at := max(0, slices.IndexFunc(targets, func(u *url.URL) bool { return sameHost(u.Hostname(), hostName(r.Host)) }))
	return targets[at].Scheme + "://" + targets[at].Host
}

// auditPage is audit for what an operator did on a page.
func (s *Server) auditPage(r *http.Request, a ui.Action) {
	s.audit(r, node.Notice{Action: a.Kind, Key: a.Key, Token: a.Token, Why: a.Reason, Result: a.Result.String()})
}
