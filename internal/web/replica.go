package web

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// The connections of peers are no clients': their number is bounded by the
// peers list, and a node that is full of clients must not lose its cluster for
// it. So where there are peers, a connection that Admit refuses gets a place in
// a small reserve, in which it can become a link and is answered 503 for
// anything else; and one that has become a link is counted nowhere.

// front lets peers through to Config.Replica before anything else: they have no
// name to check, no page they could come from, and prove themselves. No time
// limit of the server reaches them once the connection is taken over.
func (s *Server) front(next http.Handler) http.Handler {
	if s.cfg.Replica == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*admitted)
		switch {
		case r.URL.Path == s.cfg.ReplicaPath:
			defer crash() // it runs into the node, under the node's mutex
			s.cfg.Replica.ServeHTTP(&takeover{w, c}, r)
		case c != nil && c.onTrial:
			s.logFull(r.RemoteAddr)
			w.Header().Set("Connection", "close")
			s.send(w, r, fail(codeUnavailable, "the limit on connections is reached").with("Retry-After", "1"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

type connKey struct{}

// withConn lets handlers find the connection that a request came on.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	if c, ok := nc.(*admitted); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// takeover is the writer that a peer's request is answered with.
type takeover struct {
	http.ResponseWriter
	conn *admitted // nil: not counted
}

// Hijack hands the connection over to who has proved to be a peer.
func (t *takeover) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err == nil && t.conn != nil {
		t.conn.leave()
	}
	return nc, rw, err
}
