package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"holdfast/internal/node"
)

// Identity is who a request's secret belongs to.
type Identity struct {
	// Name goes into locks.Origin.Identity: only the identity that made a ticket
	// may claim it.
	Name string
	// Operate says that this identity may see the tokens and tickets of others.
	Operate bool
}

// anybody is who asks while auth is off.
var anybody = Identity{Operate: true}

type identityKey struct{}

func identity(r *http.Request) Identity {
	if id, ok := r.Context().Value(identityKey{}).(Identity); ok {
		return id
	}
	return anybody
}

func withIdentity(r *http.Request, id Identity) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), identityKey{}, id))
}

// secret returns what r authenticates itself with. A query parameter is no place
// for it: those end up in logs.
func secret(r *http.Request) string {
	if s := r.Header.Get("X-Holdfast-Auth"); s != "" {
		return s
	}
	scheme, s, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(s)
	}
	return ""
}

func (s *Server) authenticate(next http.Handler) http.Handler {
	if s.cfg.Authenticate == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := secret(r)
		id, ok := s.cfg.Authenticate(given)
		if given == "" || !ok {
			s.send(w, r, s.denial(r, given != ""))
			return
		}
		next.ServeHTTP(w, withIdentity(r, id))
	})
}

// denial makes the answer for a request without an auth token, or with a wrong one.
func (s *Server) denial(r *http.Request, tried bool) *answer {
	// Nothing tells a request that a redirect has led here, so this says what may have become of its token on the way.
	detail := "this node asks for an auth token: send it in the header X-Holdfast-Auth, which survives a redirect, " +
		"or as Authorization: Bearer, which many clients drop when one changes the port"
	if tried {
		detail = "the auth token is not one of this node's"
		s.logDenied(r)
	}
	return fail(codeUnauthenticated, detail).with("WWW-Authenticate", `Bearer realm="holdfast"`)
}

func (s *Server) logDenied(r *http.Request) {
	s.node.Note(node.Notice{Type: node.NoticeAuth, From: s.remote(r), Text: "an auth token was refused at " + r.URL.Path})
	if skipped, ok := s.authLog.allow(time.Now()); ok {
		s.log.Warn("authentication failed", "event", "auth", "remote", s.remote(r), "path", r.URL.Path, "skipped", skipped)
	}
}

// throttle lets one line a second into the log and counts the rest, so that who
// guesses secrets can't fill the disk.
type throttle struct {
	mu      sync.Mutex // guards what follows
	next    time.Time
	skipped int
}

func (t *throttle) allow(now time.Time) (skipped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.next) {
		t.skipped++
		return 0, false
	}
	skipped, t.skipped = t.skipped, 0
	t.next = now.Add(time.Second)
	return skipped, true
}
