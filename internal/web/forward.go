package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"holdfast/internal/node"
)

const (
	forwardDialTimeout = 2 * time.Second
	forwardIdleConns   = 64 // kept for the next requests
)

func newForwarding() *http.Transport {
	return &http.Transport{
		Proxy:               nil, // what the environment says about those is for the way out
		DialContext:         (&net.Dialer{Timeout: forwardDialTimeout}).DialContext,
		DisableCompression:  true, // the answer passes as it is
		MaxIdleConnsPerHost: forwardIdleConns,
		IdleConnTimeout:     idleTimeout / 2, // before the other side's, which would lose a request
		// Of a request that is not safe to repeat none is: one that breaks is answered 503.
		ResponseHeaderTimeout: bodyTimeout + maxPoll + writeSlack,
	}
}

// forwards says whether this node asks the active itself, for clients that can't
// follow a redirect.
func (s *Server) forwards() bool { return s.cfg.Standby == Forward && len(s.secrets()) > 0 }

func (s *Server) secrets() []string {
	if s.cfg.Secrets == nil {
		return nil
	}
	return s.cfg.Secrets()
}

// nearest is the address by which this node reaches the active: one of its own
// machine only if there is no other. Nil if there is none.
func (s *Server) nearest(r *http.Request, at node.ActiveNode) *url.URL {
	targets := s.targets(r, at)
	for _, u := range targets {
		if !isLoopback(hostName(u.Hostname())) {
			return u
		}
	}
	if len(targets) > 0 {
		return targets[0]
	}
	return nil
}

// forward answers what the active at target answers. Host and Origin were
// checked here, and the client's address is known here alone, so the request
// carries a mark that the active believes.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, name string, target *url.URL) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.polls, cancel)()
	remote := s.remote(r)
	proxy := &httputil.ReverseProxy{
		Transport:     s.forwarding,
		FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = target.Scheme, target.Host, target.Host
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it came, for the active to judge
			pr.Out.Header.Set(markHeader, newMark(s.secrets()[0], time.Now(), r, remote))
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			setSecureHeaders(w.Header())
			s.send(w, r, s.unforwarded(name, err))
		},
	}
	clear(w.Header()) // the answer's are the active's
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// unforwarded answers for a request that the active did not.
func (s *Server) unforwarded(name string, err error) *answer {
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case s.polls.Err() != nil:
		return stopping()
	case isOp && op.Op == "dial":
		return noActive("the active, " + name + ", can't be reached from here: repeat the request")
	}
	return fail(codeUnavailable, "the active, "+name+", did not answer: whether it was done is not known").with("Retry-After", "1")
}
