package web

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"
)

// wsProtocol is the subprotocol of /v1/ws.
const wsProtocol = "holdfast.v1"

// webSocket serves /v1/ws for as long as the connection lasts.
func (s *Server) webSocket(w http.ResponseWriter, r *http.Request) {
	id, refusal := s.admitSocket(r)
	if refusal == nil && s.sockets.ended() {
		refusal = stopping()
	}
	if refusal != nil {
		s.send(w, r, refusal)
		return
	}
	h := &hijack{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		Subprotocols:       []string{wsProtocol},
		InsecureSkipVerify: true, // admitSocket compares the scheme as well
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return // the connection is gone: all that Accept checks is checked
	}
	c := newSocket(s, r, ws, h.conn, id)
	if !s.sockets.add(c) {
		c.raw.Close()
		return
	}
	defer s.sockets.remove(c)
	c.serve()
}

// admitSocket says who asks, or why there is no WebSocket. Nil: nobody yet, but a
// hello may tell.
func (s *Server) admitSocket(r *http.Request) (*Identity, *answer) {
	id, refusal := s.socketIdentity(r)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := upgradeRefusal(r); refusal != nil {
		if id == nil { // and never will be
			refusal = s.denial(r, false)
		}
		return nil, refusal
	}
	if origin := r.Header.Get("Origin"); !s.sameOrigin(r, origin) {
		return nil, failWith(codeForeignOrigin, fmt.Sprintf("a page of the origin %q may not connect here: HOLDFAST_TRUSTED_ORIGINS can list it", origin),
			facts{Setting: "HOLDFAST_TRUSTED_ORIGINS"})
	}
	return id, nil
}

// socketIdentity says whose auth token came with the handshake; nil: none did.
func (s *Server) socketIdentity(r *http.Request) (*Identity, *answer) {
	given := secret(r)
	switch {
	case s.cfg.Authenticate == nil:
		return &anybody, nil
	case given == "":
		return nil, nil
	}
	id, ok := s.cfg.Authenticate(given)
	if !ok {
		return nil, s.denial(r, true)
	}
	return &id, nil
}

// sameOrigin says whether a page of that origin may connect. A browser always
// sends one with an upgrade; what sends none is no browser.
func (s *Server) sameOrigin(r *http.Request, origin string) bool {
	return origin == "" || s.origins.trusted[origin] || strings.EqualFold(origin, s.scheme(r)+"://"+r.Host)
}

// upgradeRefusal judges the handshake, so that refusals look like all others here.
func upgradeRefusal(r *http.Request) *answer {
	offered := tokens(r.Header, "Sec-WebSocket-Protocol")
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.Header.Get("Sec-WebSocket-Key")))
	switch {
	case r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1) || !slices.Contains(tokens(r.Header, "Connection"), "upgrade") ||
		!slices.Contains(tokens(r.Header, "Upgrade"), "websocket"):
		return upgradeRequired("this path is a WebSocket: connect with a WebSocket client")
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return upgradeRequired("the WebSocket version is not 13").with("Sec-WebSocket-Version", "13")
	case len(r.Header.Values("Sec-WebSocket-Key")) != 1 || err != nil || len(key) != 16:
		return badInput(&inputError{what: "the header Sec-WebSocket-Key is not 16 bytes in base64"})
	case len(offered) > 0 && !slices.Contains(offered, wsProtocol):
		return badInput(&inputError{what: "none of the subprotocols offered is " + wsProtocol})
	}
	return nil
}

func upgradeRequired(detail string) *answer {
	return fail(codeUpgrade, detail).with("Upgrade", "websocket").with("Connection", "Upgrade")
}

// tokens returns the elements of a header that is a list, in lower case.
func tokens(h http.Header, name string) (all []string) {
	for element := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
		if element = strings.ToLower(strings.TrimSpace(element)); element != "" {
			all = append(all, element)
		}
	}
	return all
}

// hijack remembers the connection that is taken over from the server.
type hijack struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack is http.Hijacker's.
func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = nc
	return nc, rw, err
}
