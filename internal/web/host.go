package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// hostCheck refuses requests under a name that is not this node's. A page at
// attacker.test can make that name point to this node and would then be of the
// same origin as the API (DNS rebinding); the Host header still tells. With auth
// on the page lacks the secret, so the check is off.
type hostCheck struct {
	any   bool
	names map[string]bool
}

func newHostCheck(own, allowed []string) hostCheck {
	c := hostCheck{names: map[string]bool{"localhost": true}}
	for _, name := range append(append([]string(nil), own...), allowed...) {
		c.any = c.any || name == "*"
		c.names[hostName(name)] = true
	}
	return c
}

// knows says whether a request may come under this Host header. HTTP/1.0 has
// none, and no browser speaks it.
func (c hostCheck) knows(host string) bool {
	if c.any || host == "" {
		return true
	}
	name := hostName(host)
	if c.names[name] {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

// hostName takes the port, the brackets, the root dot and the case from a host.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func (s *Server) checkHost(next http.Handler) http.Handler {
	if s.cfg.Authenticate != nil {
		return next
	}
	check := newHostCheck(s.cfg.Hosts, s.cfg.AllowedHosts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, forwarded := forwardedFrom(r); forwarded || check.knows(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		s.send(w, r, failWith(codeUnknownHost,
			fmt.Sprintf("%q is no name of this node that it knows: use an IP address or localhost, or list the name in HOLDFAST_ALLOWED_HOSTS", r.Host),
			facts{Setting: "HOLDFAST_ALLOWED_HOSTS"}))
	})
}
