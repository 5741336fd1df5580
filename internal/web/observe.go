package web

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// statusWriter remembers what was answered. ResponseController finds the
// server's own writer through Unwrap.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// observe writes a debug line for each request: the path without its query,
// which may hold tokens and tickets.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sw := &statusWriter{ResponseWriter: w}
		begin := time.Now()
		defer func() {
			if failure := recover(); failure != nil {
				s.panicked(sw, r, failure)
			}
			if s.log.Enabled(r.Context(), slog.LevelDebug) {
				s.log.Debug("request", "event", "http", "method", r.Method, "path", r.URL.Path, "status", sw.status,
					"took", time.Since(begin), "remote", s.remote(r))
			}
		}()
		next.ServeHTTP(sw, r)
	})
}

// panicked answers for a handler that broke, and keeps the process: a fault in
// showing something is no reason to drop every lock. For a fault in the table
// see crash.
func (s *Server) panicked(w *statusWriter, r *http.Request, failure any) {
	if failure == http.ErrAbortHandler {
		panic(failure)
	}
	s.log.Error("handler panicked", "event", "panic", "method", r.Method, "path", r.URL.Path, "err", failure, "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer is out: cut it off visibly
	}
	s.send(w, r, fail(codeInternal, "the handler of this request broke; the node's log says how"))
}
