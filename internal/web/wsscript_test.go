package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// A WebSocket script is a conversation over /v1/ws in fake time, with all that
// the server says. Steps, each with its expected output below "----":
//
//	config WORD…      (once, first) see configFor
//	open NAME         connect; the lines below it are
//	: Header: value   its headers
//	send NAME TEXT    send a message; {OTHER} is the last token that OTHER was told, {pad N} so many letters
//	bytes NAME HEX    send a binary message
//	cut NAME          the connection breaks
//	bye NAME          the client closes
//	advance 5s        let time pass
//	active NAME URL…  from now on that node is the active, as this one sees it
//	demote            every session is told that the node is not the active any more
//	leave             the node is asked to stop, and hands over
//	stop              the server ends its WebSockets
//	note TYPE TEXT    an edge tells the feed
//	look KEY          what stands on a key
//
// A step prints what each client has received since the last.
func TestWebSocketScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/ws/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts found", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runWSScript(t, file) })
		})
	}
}

func runWSScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	steps, tail := parseScript(string(text))
	r := newWSRun(t, steps)
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

type wsRun struct {
	t       *testing.T
	port    *port
	clients []*wsClient
}

// wsClient is a client that reads all that comes.
type wsClient struct {
	name string
	ws   *websocket.Conn
	nc   net.Conn
	done chan struct{}

	mu    sync.Mutex // guards what follows
	lines []string
	token string
}

func newWSRun(t *testing.T, steps []step) *wsRun {
	var words []string
	if first := steps[0].lines[0]; strings.HasPrefix(first, "config") {
		words = strings.Fields(first)[1:]
	}
	cfg, table := configFor(t, words, nil)
	return &wsRun{t: t, port: newPortOf(t, cfg, table)}
}

func (r *wsRun) end() {
	r.port.shutdown()
	for _, c := range r.clients {
		c.ws.CloseNow()
		<-c.done
	}
}

func (r *wsRun) step(lines []string) string {
	verb, rest, _ := strings.Cut(lines[0], " ")
	name, text, _ := strings.Cut(rest, " ")
	switch verb {
	case "config":
	case "open":
		if refusal := r.open(name, lines[1:]); refusal != "" {
			return refusal
		}
	case "send":
		r.send(name, websocket.MessageText, []byte(r.fill(text)))
	case "bytes":
		r.send(name, websocket.MessageBinary, []byte(text))
	case "cut":
		r.find(name).nc.Close()
	case "bye":
		r.find(name).ws.Close(websocket.StatusNormalClosure, "")
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(d)
	case "active":
		at := node.ActiveNode{Name: name, Native: name + ":7620", HTTP: strings.Fields(text)}
		r.port.server.active = func() node.ActiveNode { return at }
	case "demote":
		for _, c := range r.port.sockets() {
			if c.sess != nil {
				c.Push(&locks.Reply{Code: locks.Moved})
				c.Flush()
			}
		}
	case "leave":
		r.port.server.node.BeginLeave()
	case "stop":
		r.port.server.sockets.end(wsStops)
	case "note":
		kind, _ := node.NoticeTypeOf(name)
		r.port.server.node.Note(node.Notice{Type: kind, Text: text})
	case "look":
		return r.look(rest)
	default:
		r.t.Fatalf("unknown step %q", lines[0])
	}
	synctest.Wait()
	return r.received()
}

func (r *wsRun) look(key string) string {
	v, _, _ := r.port.server.node.View([]byte(key), 10, 10)
	var out strings.Builder
	for _, h := range v.Holders {
		fmt.Fprintf(&out, "held by %s from %s for %v\n", h.Origin.Owner, h.Origin.Transport, h.Lease)
	}
	for _, w := range v.Waiters {
		fmt.Fprintf(&out, "waits %d: %s connected %v\n", w.Position, w.Origin.Owner, w.Connected)
	}
	return out.String()
}

func (r *wsRun) find(name string) *wsClient {
	for _, c := range r.clients {
		if c.name == name {
			return c
		}
	}
	r.t.Fatalf("no client is called %q", name)
	return nil
}

var padding = regexp.MustCompile(`\{pad ([0-9]+)\}`)

func (r *wsRun) fill(text string) string {
	for _, c := range r.clients {
		c.mu.Lock()
		if c.token != "" {
			text = strings.ReplaceAll(text, "{"+c.name+"}", c.token)
		}
		c.mu.Unlock()
	}
	return padding.ReplaceAllStringFunc(text, func(s string) string {
		var n int
		fmt.Sscanf(s, "{pad %d}", &n)
		return strings.Repeat("x", n)
	})
}

func (r *wsRun) send(name string, kind websocket.MessageType, text []byte) {
	c := r.find(name)
	if err := c.ws.Write(context.Background(), kind, text); err != nil {
		c.add("can't send")
	}
}

// open connects, or returns what the server answered instead.
func (r *wsRun) open(name string, lines []string) string {
	c := &wsClient{name: name, done: make(chan struct{})}
	opts := &websocket.DialOptions{Subprotocols: []string{wsProtocol}, HTTPHeader: http.Header{}}
	for _, line := range lines {
		name, text, _ := strings.Cut(strings.TrimPrefix(line, ": "), ": ")
		switch name {
		case "Host":
			opts.Host = text
		case "Subprotocol":
			opts.Subprotocols = []string{text}
		default:
			opts.HTTPHeader.Set(name, text)
		}
	}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		c.nc = near
		r.port.ln.conns <- far
		return near, nil
	}}
	defer transport.CloseIdleConnections()
	opts.HTTPClient = &http.Client{Transport: transport}
	ws, res, err := websocket.Dial(r.t.Context(), "ws://localhost:7621/v1/ws", opts)
	if err != nil {
		return fmt.Sprintf("%s %d %s\n", name, res.StatusCode, res.Header.Get("Content-Type"))
	}
	ws.SetReadLimit(-1)
	c.ws = ws
	r.clients = append(r.clients, c)
	go c.read()
	if got := ws.Subprotocol(); got != wsProtocol {
		c.add("subprotocol " + got)
	}
	return ""
}

var tokenTold = regexp.MustCompile(`"token":([0-9]+)`)

func (c *wsClient) read() {
	defer close(c.done)
	for {
		_, text, err := c.ws.Read(context.Background())
		var ended websocket.CloseError
		switch {
		case err == nil:
			c.add(string(text))
			continue
		case errors.As(err, &ended):
			c.add(fmt.Sprintf("closed %d %s", ended.Code, ended.Reason))
		default:
			c.add("broken")
		}
		return
	}
}

func (c *wsClient) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if m := tokenTold.FindStringSubmatch(line); m != nil {
		c.token = m[1]
	}
}

func (r *wsRun) received() string {
	var out strings.Builder
	for _, c := range r.clients {
		c.mu.Lock()
		for _, line := range c.lines {
			out.WriteString(strings.TrimSpace(c.name+" "+line) + "\n")
		}
		c.lines = nil
		c.mu.Unlock()
	}
	return out.String()
}
