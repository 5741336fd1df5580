package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// peer returns the address that r's connection comes from.
func peer(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

func (s *Server) isProxy(a netip.Addr) bool {
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// remote returns who sent r: the other end of the connection or, where that is a
// trusted proxy, the last address in X-Forwarded-For that is none. What stands
// before it anybody may have written. Of a request that a node forwarded, that
// node has found it out.
func (s *Server) remote(r *http.Request) string {
	if from, forwarded := forwardedFrom(r); forwarded {
		return from
	}
	if !s.isProxy(peer(r)) {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		a, err := forwardedAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		if !s.isProxy(a) {
			return a.String()
		}
	}
	return r.RemoteAddr
}

// forwardedAddr reads an address as proxies write it: with a port or without.
func forwardedAddr(s string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr().Unmap(), nil
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap(), err
}

// scheme returns how the client reached this port.
func (s *Server) scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	if proto := r.Header.Get("X-Forwarded-Proto"); strings.EqualFold(proto, "https") && s.isProxy(peer(r)) {
		return "https"
	}
	return "http"
}
