package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

type member struct {
	name string
	value
}

func collect(each func(fn func(string, value) error) error) ([]member, error) {
	var got []member
	err := each(func(name string, v value) error {
		got = append(got, member{name, v})
		return nil
	})
	return got, err
}

// FuzzJSON holds the scanner against encoding/json: what it takes, that takes too,
// with the same content; what it refuses although that takes it is nested,
// or has text that encoding/json would have changed.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"key":"k","lease":1.5e3,"try":true,"x":null}`, ` { "a" : "\ud83d\ude00\n\/\"" } `, `{"a":"\ud800"}`, `{"a":[1]}`,
		`{"a":1}{}`, `{"a":01}`, "{\"a\":\"\xff\"}", `{"a":-0.0E-1}`, `{"a":tru}`, `{"\u0061":1,"a":2}`, `{"a":"\u0000"}`, `[1]`, "\ufeff{}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := collect(func(fn func(string, value) error) error { return eachJSON(body, fn) })
		standard, bad := standardMembers(body)
		if err == nil {
			if bad != nil {
				t.Fatalf("%q is taken, encoding/json says %v", body, bad)
			}
			compareMembers(t, got, standard)
			return
		}
		if !errors.As(err, new(*inputError)) {
			t.Fatalf("%q: error %T", body, err)
		}
		if bad == nil && utf8.Valid(body) && !bytes.Contains(bytes.ToLower(body), []byte(`\ud`)) {
			t.Fatalf("%q is refused: %v", body, err)
		}
	})
}

// standardMembers reads body with encoding/json: a flat object and nothing else.
func standardMembers(body []byte) ([]member, error) {
	if !json.Valid(body) {
		return nil, errors.New("not valid")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("no object")
	}
	var got []member
	for d.More() {
		name, _ := d.Token()
		m := member{name: name.(string)}
		switch v, _ := d.Token(); v := v.(type) {
		case string:
			m.value = value{kindString, v}
		case json.Number:
			m.value = value{kindNumber, v.String()}
		case bool:
			m.value = value{kindBool, map[bool]string{true: "true", false: "false"}[v]}
		case nil:
			m.value = value{kind: kindNull}
		default:
			return nil, errors.New("nested")
		}
		got = append(got, m)
	}
	return got, nil
}

func compareMembers(t *testing.T, got, want []member) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d members, encoding/json has %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("member %d is %v, encoding/json has %v", i, got[i], want[i])
		}
	}
}

// FuzzQuery holds the reader of queries and forms against net/url, which it only
// is stricter than.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"key=job&wait=5", "a=%2F+b&&c", "a=%zz", "a;b=1", "a=%ff", "=x", "a=1&a=2", "%61=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := collect(func(fn func(string, value) error) error { return eachPair(query, fn) })
		standard, bad := url.ParseQuery(query)
		if err != nil {
			if bad == nil && validValues(standard) {
				t.Fatalf("%q is refused: %v", query, err)
			}
			return
		}
		if bad != nil {
			t.Fatalf("%q is taken, net/url says %v", query, bad)
		}
		again := url.Values{}
		for _, m := range got {
			again.Add(m.name, m.text)
		}
		if again.Encode() != standard.Encode() {
			t.Fatalf("%q: %v, net/url has %v", query, again, standard)
		}
	})
}

func validValues(v url.Values) bool {
	for name, texts := range v {
		for _, text := range append(texts, name) {
			if !utf8.ValidString(text) {
				return false
			}
		}
	}
	return true
}

// FuzzRequest throws whole requests at the port: every answer is one that the
// document describes, and none is a fault of ours.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/v1/acquire", "", "application/json", `{"key":"k","wait":0.001,"lease":1}`, "")
	f.Add("POST", "/v1/acquire", "key=k&try=1", "", "", "text/plain")
	f.Add("POST", "/v1/release", "", "application/x-www-form-urlencoded", "key=k&token=1", "")
	f.Add("POST", "/v1/extend", "key=k&token=9&lease=1h", "", "", "*/*")
	f.Add("POST", "/v1/cancel", "key=k&ticket=00112233445566778899aabbccddeeff", "", "", "text/*;q=0.3")
	f.Add("GET", "/v1/lock", "key=k&waiters=3", "", "", "")
	f.Add("GET", "/v1/locks", "sort=lease&order=desc&limit=2&cursor=BWxlYXNlAQiAqbiClQEAA2EvMg", "", "", "")
	f.Add("HEAD", "/problems/limit", "", "", "", "")
	f.Add("PUT", "/readyz", "verbose", "", "", "")
	s := newServer(f, Config{}, nil)
	s.EndPolls() // who would have to wait is answered at once
	f.Fuzz(func(t *testing.T, method, path, query, kind, body, accept string) {
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, Host: "localhost", RemoteAddr: "192.0.2.1:1",
			Header: http.Header{"Content-Type": {kind}, "Accept": {accept}},
			Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}
		rec := httptest.NewRecorder()
		contract.Handler(t, s.Handler()).ServeHTTP(rec, r)
		if rec.Code == http.StatusInternalServerError {
			t.Fatal(rec.Body.String())
		}
	})
}
