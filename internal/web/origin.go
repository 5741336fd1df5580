package web

import (
	"fmt"
	"net/http"
)

// originCheck refuses what a page of another origin sends to change something.
type originCheck struct {
	protection *http.CrossOriginProtection
	trusted    map[string]bool
}

// newOriginCheck fails for an origin that is not scheme://host[:port].
func newOriginCheck(trusted []string) (*originCheck, error) {
	c := &originCheck{http.NewCrossOriginProtection(), map[string]bool{}}
	for _, origin := range trusted {
		if err := c.protection.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("HOLDFAST_TRUSTED_ORIGINS: %w", err)
		}
		c.trusted[origin] = true
	}
	return c, nil
}

// allows says whether r may change something. The standard check compares hosts
// alone where a browser sends no Sec-Fetch-Site, as all do over plain http to
// another machine; the scheme is compared here.
func (c *originCheck) allows(r *http.Request, scheme string) bool {
	if c.protection.Check(r) != nil {
		return false
	}
	origin := r.Header.Get("Origin")
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions:
		return true
	case origin == "" || r.Header.Get("Sec-Fetch-Site") != "" || c.trusted[origin]:
		return true
	}
	return origin == scheme+"://"+r.Host
}

func (s *Server) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, forwarded := forwardedFrom(r); forwarded || s.origins.allows(r, s.scheme(r)) {
			next.ServeHTTP(w, r)
			return
		}
		from := "another site"
		if origin := r.Header.Get("Origin"); origin != "" {
			from = fmt.Sprintf("the origin %q", origin)
		}
		s.send(w, r, failWith(codeForeignOrigin, "a page of "+from+" may not change anything here: HOLDFAST_TRUSTED_ORIGINS can list its origin",
			facts{Setting: "HOLDFAST_TRUSTED_ORIGINS"}))
	})
}

// secureHeaders sets what every answer carries.
func secureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecureHeaders(w.Header())
		next.ServeHTTP(w, r)
	})
}

func setSecureHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
