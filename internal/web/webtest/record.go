package webtest

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

// Handler passes requests to h and reports to t every answer that is not as
// the document has it. Where a handler gives up its connection there is none.
func (c *Contract) Handler(t testing.TB, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent bytes.Buffer
		// A copy: net/http decides by the body of its own what to do with what a handler left unread.
		r = r.WithContext(r.Context())
		r.Body = readCloser{io.TeeReader(r.Body, &sent), r.Body}
		rec := &recorder{ResponseWriter: w}
		h.ServeHTTP(rec, r)
		if rec.status == 0 {
			return
		}
		x := &Exchange{
			Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
			RequestType: r.Header.Get("Content-Type"), RequestBody: sent.Bytes(),
			Status: rec.status, Header: rec.header, Body: rec.body.Bytes(),
		}
		if err := c.Check(x); err != nil {
			t.Error(err)
		}
	})
}

type readCloser struct {
	io.Reader
	io.Closer
}

// recorder keeps what a handler writes, whether or not it arrives.
type recorder struct {
	http.ResponseWriter
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status, r.header = status, r.Header().Clone()
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	r.body.Write(b)
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the server's writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Transport sends requests through next and reports to t every answer that is
// not as the document has it: for tests that see a server from outside. It reads
// whole requests first, since next may still be sending one when its answer has
// come, and whole answers before it hands them on.
func (c *Contract) Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		var sent []byte
		if r.Body != nil {
			var err error
			if sent, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
			r.Body.Close()
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(sent))
		}
		res, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		x := &Exchange{
			Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
			RequestType: r.Header.Get("Content-Type"), RequestBody: sent,
			Status: res.StatusCode, Header: res.Header, Body: body,
		}
		if err := c.Check(x); err != nil {
			t.Error(err)
		}
		return res, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
