package web

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/node"
)

// A script is a conversation with the port in fake time, with all that it
// answers. Steps, each with its expected output below "----":
//
//	config WORD…                 (once, first) see configFor
//	do NAME METHOD TARGET        send a request; the lines below it are
//	: Header: value              its headers and
//	> body                       its body, line by line
//	do NAME METHOD TARGET json {…}   the same in short, "form …" too
//	dead NAME METHOD TARGET      the same, but the client has gone away already
//	gone NAME                    the client of a request goes away
//	deaf NAME                    from now on nothing can be written to it
//	advance 5s                   let time pass
//	stop                         end the long polls
//	stopping                     the node is asked to stop
//	active NAME URL…             from now on that node is the active; "here" is this one, "none" none
//	handoff RESULT               what the node makes of the next hand-offs
//	log                          what was logged since the last time, from info (or debug) on
//
// A step prints each request that was answered meanwhile. A ticket that the
// node made is shown as {T1}, {T2}, …, and can be used by that name; {NAME} is the
// token in the answer to that request.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts found", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runScript(t, file) })
		})
	}
}

type step struct {
	lines []string // the command and what belongs to it
	want  string
	head  string // comments and blank lines before it
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	steps, tail := parseScript(string(text))
	toTokenTime()
	r := newRun(t, &steps)
	defer r.end()
	var out strings.Builder
	for _, s := range steps {
		got := r.step(s.lines)
		fmt.Fprintf(&out, "%s%s\n----\n%s\n", s.head, strings.Join(s.lines, "\n"), got)
		if got != s.want && !*rewrite {
			t.Errorf("%s\ngot:\n%swant:\n%s", strings.Join(s.lines, "\n"), got, s.want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.TrimRight(out.String()+tail, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// parseScript cuts a script into steps: a step's output ends at a blank line.
func parseScript(text string) (steps []step, tail string) {
	var s step
	in := "head"
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case in == "head" && (line == "" || line[0] == '#'):
			s.head += line + "\n"
		case line == "----":
			in = "want"
		case in == "want" && line == "":
			steps = append(steps, s)
			s, in = step{}, "head"
		case in == "want":
			s.want += line + "\n"
		default:
			in = "lines"
			s.lines = append(s.lines, line)
		}
	}
	if s.lines != nil {
		steps = append(steps, s)
		s = step{}
	}
	return steps, s.head
}

// run is a script on its way.
type run struct {
	t       *testing.T
	server  *Server
	handler http.Handler
	log     bytes.Buffer
	calls   []*call
	tickets []string // made by the node
}

// call is one request of a script.
type call struct {
	name   string
	cancel context.CancelFunc
	rec    *httptest.ResponseRecorder
	writer *deafWriter
	done   chan struct{}
	shown  bool
}

// deafWriter fails once its client is said to be deaf.
type deafWriter struct {
	*httptest.ResponseRecorder
	deaf atomic.Bool
}

func (w *deafWriter) Write(b []byte) (int, error) {
	if w.deaf.Load() {
		return 0, os.ErrClosed
	}
	return w.ResponseRecorder.Write(b)
}

func newRun(t *testing.T, steps *[]step) *run {
	r := &run{t: t}
	var words []string
	if first := (*steps)[0].lines[0]; strings.HasPrefix(first, "config") {
		words = strings.Fields(first)[1:]
	}
	level := slog.LevelInfo
	if slices.Contains(words, "debug") {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stack" {
			return slog.Attr{}
		}
		return a
	}}))
	cfg, table := configFor(t, words, log)
	r.server = newServer(t, cfg, table)
	r.handler = contract.Handler(t, r.server.Handler())
	time.Sleep(time.Millisecond) // the node's clock starts at 0, which is no instant for a session to go
	return r
}

func (r *run) end() {
	for _, c := range r.calls {
		c.cancel()
		<-c.done
		c.cancel()
	}
}

func (r *run) step(lines []string) string {
	verb, rest, _ := strings.Cut(lines[0], " ")
	switch verb {
	case "config":
		return ""
	case "do":
		r.do(rest, lines[1:], false)
	case "dead":
		r.do(rest, lines[1:], true)
	case "gone":
		r.find(rest).cancel()
	case "deaf":
		r.find(rest).writer.deaf.Store(true)
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(d)
	case "stop":
		r.server.EndPolls()
	case "stopping":
		r.server.node.SetStopping()
	case "active":
		name, urls, _ := strings.Cut(rest, " ")
		at := node.ActiveNode{Name: name, Native: name + ":7620", HTTP: strings.Fields(urls)}
		switch name {
		case "here":
			at = r.server.node.Active()
		case "none":
			at = node.ActiveNode{}
		}
		r.server.active = func() node.ActiveNode { return at }
	case "handoff":
		result, err := strconv.Atoi(rest)
		if err != nil {
			r.t.Fatal(err)
		}
		r.server.handOver = func(string) node.HandoffResult { return node.HandoffResult(result) }
	case "log":
		synctest.Wait()
		defer r.log.Reset()
		return r.log.String()
	default:
		r.t.Fatalf("unknown step %q", lines[0])
	}
	synctest.Wait()
	return r.answered()
}

func (r *run) find(name string) *call {
	i := slices.IndexFunc(r.calls, func(c *call) bool { return c.name == name })
	if i < 0 {
		r.t.Fatalf("no request is called %q", name)
	}
	return r.calls[i]
}

func (r *run) do(command string, lines []string, dead bool) {
	for i, ticket := range r.tickets {
		command = strings.ReplaceAll(command, fmt.Sprintf("{T%d}", i+1), ticket)
	}
	for _, c := range r.calls {
		if !c.shown {
			continue
		}
		if m := tokenShown.FindStringSubmatch(c.rec.Body.String()); m != nil {
			command = strings.ReplaceAll(command, "{"+c.name+"}", m[1])
		}
	}
	word := strings.SplitN(command, " ", 5)
	req := &http.Request{
		Method: word[1], URL: parseTarget(r.t, word[2]), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Host: "localhost:7621", RemoteAddr: "192.0.2.1:4444",
	}
	body := ""
	if len(word) == 5 {
		req.Header.Set("Content-Type", map[string]string{"json": "application/json", "form": "application/x-www-form-urlencoded"}[word[3]])
		body = word[4]
	}
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "> "); ok {
			body += text + "\n"
			continue
		}
		name, text, _ := strings.Cut(strings.TrimPrefix(line, ": "), ": ")
		switch name {
		case "Host":
			req.Host = text
		case "Remote":
			req.RemoteAddr = text
		case "Pad": // so many spaces at the body's end
			var n int
			fmt.Sscan(text, &n)
			body += strings.Repeat(" ", n)
		default:
			req.Header.Add(name, text)
		}
	}
	req.Body, req.ContentLength = http.NoBody, 0
	if body != "" {
		req.Body, req.ContentLength = readCloser{strings.NewReader(body)}, int64(len(body))
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{name: word[0], cancel: cancel, rec: httptest.NewRecorder(), done: make(chan struct{})}
	c.writer = &deafWriter{ResponseRecorder: c.rec}
	r.calls = append(r.calls, c)
	if dead {
		cancel()
	}
	go func() {
		defer close(c.done)
		r.handler.ServeHTTP(c.writer, req.WithContext(ctx))
	}()
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// parseTarget reads a target as net/http does.
func parseTarget(t *testing.T, target string) *url.URL {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// answered prints the requests that have been answered since the last step.
func (r *run) answered() string {
	var out strings.Builder
	for _, c := range r.calls {
		select {
		case <-c.done:
		default:
			continue
		}
		if c.shown {
			continue
		}
		c.shown = true
		out.WriteString(r.show(c))
	}
	return out.String()
}

var (
	tokenShown   = regexp.MustCompile(`^(?:.*"token":)?([0-9]+)`)
	madeTicket   = regexp.MustCompile(`"ticket":"([0-9a-f]{32})"`)
	shownHeaders = []string{"Allow", "Retry-After", "Www-Authenticate", "Connection", "Location"}
)

func (r *run) show(c *call) string {
	body := c.rec.Body.String()
	if c.writer.deaf.Load() || body == "" {
		return c.name + " nothing\n"
	}
	line := fmt.Sprintf("%s %d", c.name, c.rec.Code)
	switch kind := c.rec.Header().Get("Content-Type"); kind {
	case "application/json", "application/problem+json":
	default:
		line += " " + kind
	}
	for _, name := range shownHeaders {
		if text := c.rec.Header().Get(name); text != "" {
			line += fmt.Sprintf(" %s: %s", name, text)
		}
	}
	for _, m := range madeTicket.FindAllStringSubmatch(body, -1) {
		if !strings.Contains(m[1], "0000000000") && !slices.Contains(r.tickets, m[1]) { // the scripts' own look like 0…01
			r.tickets = append(r.tickets, m[1])
		}
	}
	for i, ticket := range r.tickets {
		body = strings.ReplaceAll(body, ticket, fmt.Sprintf("{T%d}", i+1))
	}
	return line + " " + strings.TrimSuffix(body, "\n") + "\n"
}
