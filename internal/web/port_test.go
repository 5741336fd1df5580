package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/locks"
)

// pipes is a listener whose connections are net.Pipes, so that a whole HTTP
// server can run in a bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "192.0.2.9:9" }

// port is a server that serves pipes.
type port struct {
	t      *testing.T
	server *Server
	ln     *pipes
	served chan error
}

func newPort(t *testing.T, cfg Config) *port { return newPortOf(t, cfg, nil) }

func newPortOf(t *testing.T, cfg Config, table func(*locks.Config)) *port {
	toTokenTime()
	p := &port{t: t, server: newServer(t, cfg, table), ln: newPipes(), served: make(chan error, 1)}
	p.server.http.Handler = contract.Handler(t, p.server.Handler())
	time.Sleep(time.Millisecond)
	go func() { p.served <- p.server.Serve(p.ln) }()
	return p
}

func (p *port) shutdown() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		p.t.Error("shutdown:", err)
	}
	if err := <-p.served; err != nil {
		p.t.Error("serve:", err)
	}
}

// dial opens a connection and sends text on it.
func (p *port) dial(text string) *client {
	near, far := net.Pipe()
	p.ln.conns <- far
	c := &client{Conn: near, in: bufio.NewReader(near)}
	if text != "" {
		io.WriteString(near, text)
	}
	return c
}

type client struct {
	net.Conn
	in *bufio.Reader
}

// answer reads one answer: its status and the start of its body, or what
// happened instead.
func (c *client) answer() string {
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", res.StatusCode, body)
}

func post(target string) string {
	return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
}

func (p *port) wantAnswer(c *client, part string) {
	p.t.Helper()
	if got := c.answer(); !strings.Contains(got, part) {
		p.t.Errorf("got %q, want %q in it", got, part)
	}
}

// waiting returns how many wait for key k.
func (p *port) waiting() int {
	synctest.Wait()
	v, _, _ := p.server.node.View([]byte("k"), 0, 1000)
	return v.WaitersTotal
}

// A client that closes its connection while it waits never gets the key; one
// whose ticket it knows keeps its place for the grace.
func TestClientGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		holder := p.dial(post("/v1/acquire?key=k&lease=100"))
		p.wantAnswer(holder, `"token":16000,`)

		untold := p.dial(post("/v1/acquire?key=k&poll=50"))
		told := p.dial(post("/v1/acquire?key=k&ticket=0000000000000000000000000000000a"))
		body := `{"key":"k"}`
		withBody := p.dial(fmt.Sprintf("POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		last := p.dial(post("/v1/acquire?key=k&wait=40"))
		if n := p.waiting(); n != 4 {
			t.Fatalf("%d wait", n)
		}
		untold.Close()
		withBody.Close()
		if n := p.waiting(); n != 2 {
			t.Errorf("%d wait after two without a known ticket left", n)
		}
		told.Close()
		time.Sleep(5*time.Second - time.Nanosecond)
		if n := p.waiting(); n != 2 {
			t.Errorf("%d wait within the grace", n)
		}
		time.Sleep(time.Nanosecond)
		if n := p.waiting(); n != 1 {
			t.Errorf("%d wait after the grace", n)
		}
		io.WriteString(holder, post("/v1/release?key=k&token=16000"))
		p.wantAnswer(holder, "released")
		p.wantAnswer(last, "granted")
		holder.Close()
		last.Close()
	})
}

// A body is read within its time, and the deadline for it does not end the
// long poll that follows.
func TestBodyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		p.wantAnswer(p.dial(post("/v1/acquire?key=k&lease=100")), "granted")

		const head = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n"
		begin := time.Now()
		slow := p.dial(head + `{"key":"k"`)
		p.wantAnswer(slow, "400 ")
		if took := time.Since(begin); took != bodyTimeout {
			t.Errorf("refused after %v", took)
		}
		if got := slow.answer(); !strings.Contains(got, "EOF") {
			t.Errorf("the connection goes on with %q", got)
		}
		// A body that no handler reads has the same time.
		for _, target := range []string{"/nope", "/v1/node", "/v1/openapi.json"} {
			begin = time.Now()
			unread := p.dial(strings.Replace(head, "/v1/acquire", target, 1))
			p.wantAnswer(unread, "40")
			if got := unread.answer(); !strings.Contains(got, "EOF") || time.Since(begin) > bodyTimeout {
				t.Errorf("%s: the connection goes on after %v with %q", target, time.Since(begin), got)
			}
		}
		begin = time.Now()
		poll := p.dial(head + `{"key":"k"`)
		time.Sleep(bodyTimeout - time.Nanosecond)
		io.WriteString(poll, `,"poll":9}`)
		p.wantAnswer(poll, `202 {"status":"queued"`)
		if took := time.Since(begin); took != bodyTimeout-1+9*time.Second {
			t.Errorf("the poll took %v", took)
		}
		poll.Close()
	})
}

// The longest poll and more than the header timeout: nothing cuts it.
func TestLongestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		c := p.dial(post("/v1/acquire?key=k&lease=200"))
		p.wantAnswer(c, "granted")
		for range 2 {
			begin := time.Now()
			io.WriteString(c, post("/v1/acquire?key=k&poll=50"))
			p.wantAnswer(c, "202 ")
			if took := time.Since(begin); took != 50*time.Second {
				t.Errorf("took %v", took)
			}
		}
		c.Close()
	})
}

// C-71: connections that send their header a byte every five seconds are closed
// at the header's time limit, whatever they send; others are served meanwhile.
func TestSlowHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		const n = 200
		began := time.Now()
		ended := make(chan time.Duration, n)
		for range n {
			c := p.dial("")
			go io.Copy(io.Discard, c.in)
			go func() {
				for i := 0; ; i++ {
					if _, err := c.Write([]byte("GET /v1/lock?key=aaaaaaaaaaaa HTTP/1.1\r\n"[i : i+1])); err != nil {
						ended <- time.Since(began)
						return
					}
					time.Sleep(5 * time.Second)
				}
			}()
		}
		time.Sleep(8 * time.Second)
		ok := p.dial(post("/v1/acquire?key=k"))
		p.wantAnswer(ok, "granted")
		ok.Close()
		for range n {
			if took := <-ended; took > headerTimeout+5*time.Second {
				t.Errorf("a slow connection was cut after %v", took)
			}
		}
	})
}

// An idle keep-alive connection is closed at its limit.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		c := p.dial("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		p.wantAnswer(c, "200 ")
		begin := time.Now()
		c.in.ReadByte()
		if took := time.Since(begin); took != idleTimeout {
			t.Errorf("closed after %v", took)
		}
	})
}

// A client that does not read its answer is cut off; its grant is given back.
func TestAnswerIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		begin := time.Now()
		deaf := p.dial(post("/v1/acquire?key=k&lease=1000"))
		synctest.Wait()
		other := p.dial(post("/v1/acquire?key=k&wait=45"))
		p.wantAnswer(other, "409 ")
		io.WriteString(other, post("/v1/acquire?key=k&wait=49"))
		p.wantAnswer(other, "granted")
		if took := time.Since(begin); took != p.server.http.WriteTimeout {
			t.Errorf("given back after %v", took)
		}
		other.Close()
		deaf.Close()
	})
}

// C-53: Shutdown answers every long poll and returns at once.
func TestShutdownWithPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		c := p.dial(post("/v1/acquire?key=k&lease=100"))
		p.wantAnswer(c, "granted")
		var polls []*client
		for i := range 200 {
			polls = append(polls, p.dial(post(fmt.Sprintf("/v1/acquire?key=k&poll=%d", i%50))))
		}
		synctest.Wait()
		var answered sync.WaitGroup
		for _, poll := range polls {
			answered.Go(func() {
				if got := poll.answer(); !strings.HasPrefix(got, "503 ") && !strings.HasPrefix(got, "202 ") {
					t.Error(got)
				}
			})
		}
		begin := time.Now()
		p.shutdown()
		answered.Wait()
		if took := time.Since(begin); took > 600*time.Millisecond { // net/http looks every half second
			t.Errorf("took %v", took)
		}
		if v, _, _ := p.server.node.View([]byte("k"), 1, 1); v.WaitersTotal > 4 { // polls of 0 s had their 202
			t.Errorf("%d still wait", v.WaitersTotal)
		}
	})
}

// A connection that was opened ahead, and on which nothing has come, holds nothing up.
func TestShutdownWithFreshConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		c := p.dial("")
		synctest.Wait()
		begin := time.Now()
		p.shutdown()
		if took := time.Since(begin); took > 600*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got := c.answer(); !strings.Contains(got, "EOF") {
			t.Errorf("got %q", got)
		}
	})
}

// Where a request does not end, Shutdown does.
func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		c := p.dial("POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := p.server.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("err %v", err)
		}
		if got := c.answer(); !strings.Contains(got, "EOF") {
			t.Errorf("got %q", got)
		}
		<-p.served
	})
}

// Connections that Admit refuses get a line that says so; those it admits are
// counted out once when they end.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		open := 0
		var log strings.Builder
		p := newPort(t, Config{
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			Admit: func(net.Addr) (func(), bool) {
				mu.Lock()
				defer mu.Unlock()
				if open == 1 {
					return nil, false
				}
				open++
				return func() { mu.Lock(); open--; mu.Unlock() }, true
			},
		})
		defer p.shutdown()
		first := p.dial("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		p.wantAnswer(first, "200 ")
		second := p.dial("")
		p.wantAnswer(second, "503 the limit on connections is reached.\n")
		if got := second.answer(); !strings.Contains(got, "EOF") {
			t.Errorf("then %q", got)
		}
		first.Close()
		synctest.Wait()
		third := p.dial("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		p.wantAnswer(third, "200 ")
		third.Close()
		synctest.Wait()
		if open != 0 {
			t.Errorf("%d connections are still counted", open)
		}
		if n := strings.Count(log.String(), "connection refused"); n != 1 {
			t.Errorf("logged %d times: %s", n, log.String())
		}
	})
}

// net/http closes some connections twice; they are counted out once.
func TestClosedTwice(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	n := 0
	c := &admitted{Conn: far, gone: func() { n++ }}
	c.Close()
	c.Close()
	if n != 1 {
		t.Errorf("counted out %d times", n)
	}
}

// The error of a listener that breaks is Serve's.
func TestServeFails(t *testing.T) {
	s := newServer(t, Config{}, nil)
	ln := newPipes()
	ln.Close()
	if err := s.Serve(ln); err == nil {
		t.Error("no error")
	}
}

// HTTP/1.0 has no Host, and a header that is too large is refused before it is kept.
func TestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		p.wantAnswer(p.dial("GET /livez HTTP/1.0\r\n\r\n"), "200 ")
		p.wantAnswer(p.dial("GET /livez HTTP/1.1\r\n\r\n"), "400 ")
		p.wantAnswer(p.dial("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"), "404 ")
		p.wantAnswer(p.dial("HEAD /v1/lock?key=k HTTP/1.0\r\n\r\n"), "EOF") // a length, and no body

		big := p.dial("")
		go io.WriteString(big, "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
		p.wantAnswer(big, "431 ")
		big.Close()
	})
}

// A handler that panics is answered with a fault, and logged, without ending
// the process; one that had begun to answer is cut off.
func TestPanics(t *testing.T) {
	var log strings.Builder
	s := newServer(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	r := httptest.NewRequest("GET", "http://localhost/v1/node", nil)
	rec := httptest.NewRecorder()
	h := s.observe(secureHeaders(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") })))
	contract.Handler(t, h).ServeHTTP(rec, r)
	if rec.Code != http.StatusInternalServerError || !strings.Contains(log.String(), "on purpose") {
		t.Errorf("%d, log %q", rec.Code, log.String())
	}
	for _, h := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("half")); panic("on purpose") },
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("recovered %v", got)
				}
			}()
			s.observe(h).ServeHTTP(httptest.NewRecorder(), r)
		}()
	}
}

func TestNewRefuses(t *testing.T) {
	for _, origin := range []string{"ui.example", "https://ui.example/path", "null", ""} {
		_, err := New(Config{Node: newServer(t, Config{}, nil).node, TrustedOrigins: []string{origin}})
		if err == nil || !strings.Contains(err.Error(), "HOLDFAST_TRUSTED_ORIGINS") {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
