package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// answer is what a handler found out, before anybody chose a format for it.
type answer struct {
	status int
	body   any               // what the JSON answer says
	plain  string            // the same as one line of text
	header map[string]string // headers of the case
}

func ok(body any, plain string) *answer {
	return &answer{status: http.StatusOK, body: body, plain: plain}
}

// with adds a header.
func (a *answer) with(name, text string) *answer {
	if a.header == nil {
		a.header = map[string]string{}
	}
	a.header[name] = text
	return a
}

// send writes every answer of the API, good or bad, as JSON or as a line of text.
// It returns once the answer is with the operating system; an error means that
// it never wholly got there.
func (s *Server) send(w http.ResponseWriter, r *http.Request, a *answer) error {
	kind, body := "application/json", []byte(nil)
	switch _, failed := a.body.(*problem); {
	case wantsPlain(r):
		kind, body = "text/plain; charset=utf-8", append([]byte(a.plain), '\n')
	case failed:
		kind = "application/problem+json"
	}
	if body == nil {
		var err error
		if body, err = marshal(a.body); err != nil {
			return err // unreachable: the bodies are our own types
		}
	}
	h := w.Header()
	for name, text := range a.header {
		h.Set(name, text)
	}
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	return write(w, a.status, body)
}

// write sends a whole body with its length and flushes it.
func write(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return err
	}
	if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// marshal writes JSON as people want to read it, <, > and & in keys included:
// no answer is ever taken for HTML.
func marshal(body any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return b.Bytes(), err
}

// wantsPlain says whether r prefers text/plain to JSON. A client that lists
// both, as some libraries do by default, gets JSON.
func wantsPlain(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return accept != "" && quality(accept, "text/plain") > quality(accept, "application/json")
}

// quality returns how much an Accept header likes a media type, by its most
// precise entry.
func quality(accept, kind string) float64 {
	group, _, _ := strings.Cut(kind, "/")
	best, precision := 0.0, 0
	for entry := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(entry, ";")
		p := 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case kind:
			p = 3
		case group + "/*":
			p = 2
		case "*/*":
			p = 1
		}
		if p > precision {
			precision, best = p, qParam(params)
		}
	}
	return best
}

// qParam finds q among the parameters of an Accept entry; 1 where there is none.
func qParam(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, text, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(text, 64); err == nil && q >= 0 && q <= 1 {
			return q
		}
		return 0
	}
	return 1
}
