package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"holdfast/internal/node"
)

// onlyActive lets through what only the active answers where this node is that,
// and sends everything else there. The body is not read: what it says is for
// the active to judge.
func (s *Server) onlyActive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := s.active(); !at.Here {
			s.elsewhere(w, r, at)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// orLocal is onlyActive for views, which a node gives of itself when asked to.
func (s *Server) orLocal(next http.Handler) http.Handler {
	active := s.onlyActive(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wantsLocal(r) {
			next.ServeHTTP(w, r)
			return
		}
		active.ServeHTTP(w, r)
	})
}

// wantsLocal says whether the query has local=1. A query that can't be read says
// nothing: the active refuses it.
func wantsLocal(r *http.Request) (local bool) {
	err := eachPair(r.URL.RawQuery, func(name string, v value) (err error) {
		if name == "local" {
			local, err = parseBool(v)
		}
		return err
	})
	return err == nil && local
}

// elsewhere answers for a node that is not the active.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request, at node.ActiveNode) {
	if _, forwarded := forwardedFrom(r); !forwarded && s.forwards() {
		if target := s.nearest(r, at); target != nil {
			s.forward(w, r, at.Name, target)
			return
		}
	}
	if r.ContentLength != 0 {
		// Else net/http would read the body before it lets the answer go.
		w.Header().Set("Connection", "close")
	}
	s.send(w, r, s.redirect(r, at))
}

// moved answers for a command whose key is served elsewhere by now. Its body was
// read, so it can't be forwarded any more; a client that can't follow a redirect
// repeats it.
func (s *Server) moved(r *http.Request) *answer {
	if s.forwards() {
		return noActive("the active has just changed: repeat the request")
	}
	return s.redirect(r, s.active())
}

type movedBody struct {
	Status   string `json:"status"`
	Active   string `json:"active"`
	Location string `json:"location"`
}

// redirect sends r to the active. One that was forwarded has made its hop: the
// node that did so knows less than its client could.
func (s *Server) redirect(r *http.Request, at node.ActiveNode) *answer {
	if _, forwarded := forwardedFrom(r); forwarded {
		return noActive("this node is not the active, though another took it for that: repeat the request")
	}
	target := s.reachable(r, at)
	if target == nil {
		return noActive(unknownActive(at))
	}
	location := target.Scheme + "://" + target.Host + r.URL.RequestURI()
	return (&answer{
		status: http.StatusTemporaryRedirect,
		body:   movedBody{"moved", at.Name, location},
		plain:  fmt.Sprintf("the active is %s: follow the Location header (curl does with -L)", at.Name),
	}).with("Location", location)
}

// reachable is where r's client should go: of several addresses, the one by which
// it reaches this machine, or this network. Nil: none is known.
func (s *Server) reachable(r *http.Request, at node.ActiveNode) *url.URL {
	targets := s.targets(r, at)
	if len(targets) == 0 {
		return nil
	}
	if i := slices.IndexFunc(targets, func(u *url.URL) bool { return sameHost(u.Hostname(), hostName(r.Host)) }); i >= 0 {
		return targets[i]
	}
	return targets[0]
}

func noActive(detail string) *answer { return fail(codeNoActive, detail).with("Retry-After", "1") }

func unknownActive(at node.ActiveNode) string {
	if at.Name == "" || at.Here {
		return "no active node is known now: repeat the request"
	}
	return fmt.Sprintf("the active is %s, but no HTTP address of it is known here that would not lead back", at.Name)
}

// targets are the active's addresses that a request can be sent to: not to this
// node, by an address that it shares with the active or by the one that the
// request came by, and not to every address at once.
func (s *Server) targets(r *http.Request, at node.ActiveNode) (usable []*url.URL) {
	if at.Name == "" || at.Here {
		return nil
	}
	for _, text := range at.HTTP {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || isWildcard(u.Hostname()) {
			continue
		}
		if !s.own[endpoint(u)] && !samePlace(u, r.Host) {
			usable = append(usable, u)
		}
	}
	return usable
}

// endpoint is where a URL leads, to compare it with others.
func endpoint(u *url.URL) string { return hostName(u.Hostname()) + " " + portOf(u) }

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// samePlace says whether u leads to where a request with this Host header came.
func samePlace(u *url.URL, host string) bool {
	came := &url.URL{Scheme: u.Scheme, Host: host}
	return portOf(u) == portOf(came) && sameHost(u.Hostname(), hostName(host))
}

// sameHost compares host names; all that lead to the own machine are one.
func sameHost(a, b string) bool {
	a, b = hostName(a), hostName(b)
	return a == b || isLoopback(a) && isLoopback(b)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}

func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsUnspecified()
}
