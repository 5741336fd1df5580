package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxBodyBytes = 64 << 10

	// bodyTimeout is how long a client may take over its body: enough for 64 KiB
	// on the worst line, too little to hold a connection for nothing.
	bodyTimeout = 10 * time.Second
)

// field is one input of an endpoint: its name and how its value gets into T.
type field[T any] struct {
	name     string
	required bool
	set      func(in *T, v value) error
}

// schema is what an endpoint takes: the one place that says so. It drives
// parsing and refusals, and a test holds openapi.json against it.
type schema[T any] []field[T]

// take describes an optional field.
func take[T, V any](name string, at func(*T) *V, parse func(value) (V, error)) field[T] {
	return field[T]{name: name, set: func(in *T, v value) (err error) {
		*at(in), err = parse(v)
		return err
	}}
}

// need describes a required field.
func need[T, V any](name string, at func(*T) *V, parse func(value) (V, error)) field[T] {
	f := take(name, at, parse)
	f.required = true
	return f
}

func (s schema[T]) names() []string {
	names := make([]string, len(s))
	for i, f := range s {
		names[i] = f.name
	}
	return names
}

func (s schema[T]) unknown(name string) error {
	takes := "nothing"
	if len(s) > 0 {
		takes = strings.Join(s.names(), ", ")
	}
	if name == "" {
		return &inputError{what: "a field has no name; this request takes " + takes}
	}
	return &inputError{name, "is no field of this request; it takes " + takes}
}

// decode runs each over a request's fields and sorts them into a T.
func (s schema[T]) decode(each func(fn func(name string, v value) error) error) (in T, err error) {
	var seen uint64 // no endpoint has 64 fields
	err = each(func(name string, v value) error {
		for i, f := range s {
			if f.name != name {
				continue
			}
			if seen&(1<<i) != 0 {
				return &inputError{name, "is given twice"}
			}
			seen |= 1 << i
			if err := f.set(&in, v); err != nil {
				return &inputError{name, err.Error()}
			}
			return nil
		}
		return s.unknown(name)
	})
	if err != nil {
		return in, err
	}
	for i, f := range s {
		if f.required && seen&(1<<i) == 0 {
			return in, &inputError{f.name, "is missing"}
		}
	}
	return in, nil
}

// readInput takes what a request says from its body or, where there is none,
// from its query.
func readInput[T any](w http.ResponseWriter, r *http.Request, s schema[T]) (in T, refusal *answer) {
	body, refusal := readBody(w, r)
	if refusal != nil {
		return in, refusal
	}
	each, refusal := bodyReader(r, body)
	if refusal != nil {
		return in, refusal
	}
	in, err := s.decode(each)
	if err != nil {
		return in, badInput(err)
	}
	return in, nil
}

// handle serves an endpoint: input by its schema, then h, then the answer.
func handle[T any](s *Server, takes schema[T], h func(r *http.Request, in T) *answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, a := readInput(w, r, takes)
		if a == nil {
			a = h(r, in)
		}
		s.send(w, r, a)
	}
}

type fieldReader = func(fn func(name string, v value) error) error

// bodyReader chooses how the fields of r are read.
func bodyReader(r *http.Request, body []byte) (fieldReader, *answer) {
	switch {
	case len(body) == 0:
		return func(fn func(string, value) error) error { return eachPair(r.URL.RawQuery, fn) }, nil
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return nil, badInput(&inputError{what: "a " + r.Method + " takes query parameters and no body"})
	case r.URL.RawQuery != "":
		return nil, badInput(&inputError{what: "there is a query beside the body: give all fields in one of them"})
	}
	switch mediaType(r) {
	case "application/json":
		return func(fn func(string, value) error) error { return eachJSON(body, fn) }, nil
	case "application/x-www-form-urlencoded":
		return func(fn func(string, value) error) error { return eachForm(string(body), fn) }, nil
	}
	return nil, fail(codeUnsupportedType, fmt.Sprintf(
		"the body's Content-Type is %q: send application/json or application/x-www-form-urlencoded, in UTF-8, or query parameters without a body",
		r.Header.Get("Content-Type")))
}

// mediaType returns the type of r's body, or "" where its character set is not UTF-8.
func mediaType(r *http.Request) string {
	t, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if cs := params["charset"]; err != nil || cs != "" && !strings.EqualFold(cs, "utf-8") {
		return ""
	}
	return t
}

// readBody reads all of r's body.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *answer) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" {
		return nil, fail(codeUnsupportedType, fmt.Sprintf("the body's Content-Encoding is %q: send it plain, compressed requests are refused", enc))
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	var body []byte
	err := error(&http.MaxBytesError{Limit: maxBodyBytes})
	if r.ContentLength <= maxBodyBytes {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	}
	if err != nil {
		w.Header().Set("Connection", "close") // nobody will read the rest to find the next request
		if errors.As(err, new(*http.MaxBytesError)) {
			return nil, tooLarge()
		}
		return nil, badInput(&inputError{what: "the body broke off, or took longer than " + bodyTimeout.String()})
	}
	return body, nil
}

// timeBody bounds the time for a body, also of one that no handler reads: then
// net/http does, before it answers, to find the next request. It lifts the
// deadline once the body has been read, so that a long poll may follow.
func timeBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// A writer without deadlines is a test's recorder; the server's has them.
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

func tooLarge() *answer {
	return fail(codeTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBodyBytes))
}

// eachForm reads a form body.
func eachForm(body string, fn func(name string, v value) error) error {
	if strings.HasPrefix(body, "{") {
		return &inputError{what: "the body looks like JSON but came as a form: add the header Content-Type: application/json"}
	}
	return eachPair(body, fn)
}

// eachPair reads name=value pairs as a query or a form holds them. Empty pairs
// are skipped.
func eachPair(query string, fn func(name string, v value) error) error {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			continue
		}
		name, text, found := strings.Cut(pair, "=")
		name, err := unescape(name)
		if err != nil {
			return &inputError{what: "a field name " + err.Error()}
		}
		v := value{kind: kindText}
		if !found {
			v.kind = kindBare
		}
		if v.text, err = unescape(text); err != nil {
			return &inputError{name, err.Error()}
		}
		if err := fn(name, v); err != nil {
			return err
		}
	}
	return nil
}

func unescape(s string) (string, error) {
	if strings.Contains(s, ";") {
		return "", errors.New(`holds a ";", which some programs take for "&": write %3B`)
	}
	s, err := url.QueryUnescape(s)
	if err != nil {
		return "", errors.New("holds a bad escape: a % is followed by two hex digits")
	}
	return s, validText(s)
}
