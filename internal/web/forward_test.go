package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// pair is a standby that forwards to an active, in one bubble.
type pair struct {
	*port         // the standby
	active *port  // n2
	seen   marked // what came to the active
}

// marked keeps the headers of the requests that come to a handler.
type marked struct {
	mu      sync.Mutex
	headers []http.Header
	hosts   []string
}

func (m *marked) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.headers, m.hosts = append(m.headers, r.Header.Clone()), append(m.hosts, r.Host)
		m.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (m *marked) last() (http.Header, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.headers[len(m.headers)-1], m.hosts[len(m.hosts)-1]
}

func twoSecrets() []string { return []string{"new-horse-battery", "old-horse-battery"} }

// newPair makes both. The active knows the standby's first secret as its second.
func newPair(t *testing.T, standby, active Config) *pair {
	standby.Standby, standby.Secrets = Forward, twoSecrets
	active.Secrets = func() []string { return []string{"old-horse-battery", "new-horse-battery"} }
	active.Hosts = []string{"n2"}
	p := &pair{port: newPort(t, standby), active: newPort(t, active)}
	p.active.server.http.Handler = p.seen.wrap(p.active.server.http.Handler)
	p.server.active = func() node.ActiveNode {
		return node.ActiveNode{Name: "n2", HTTP: []string{"http://localhost:7631", "http://n2:7621"}}
	}
	p.server.forwarding.DialContext = func(_ context.Context, _, addr string) (net.Conn, error) {
		if addr != "n2:7621" {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		near, far := net.Pipe()
		p.active.ln.conns <- far
		return near, nil
	}
	return p
}

func (p *pair) shutdown() {
	p.port.shutdown()
	p.active.shutdown()
}

const withBody = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"

// What the active answers is what the client gets, byte for byte.
func TestForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, Config{}, Config{})
		defer p.shutdown()
		body := `{"key":"k","lease":3000}`
		c := p.dial(fmt.Sprintf(withBody, len(body), body))
		defer c.Close()
		p.wantAnswer(c, `200 {"status":"granted","key":"k"`)
		if h, host := p.seen.last(); host != "n2:7621" || len(h.Values(markHeader)) != 1 {
			t.Errorf("host %q, header %v", host, h)
		}
		for _, target := range []string{"/v1/lock?key=k", "/v1/locks?prefix=%6b&limit=1", "/v1/lock?key=%zz", "/v1/lock?key=k&colour=red;green", "/v1/lock?"} {
			request := "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1:7621\r\nAccept-Encoding: gzip\r\n\r\n"
			direct := p.active.dial(request)
			want, got := readAll(t, direct), ""
			direct.Close()
			through := p.dial(request)
			got = readAll(t, through)
			through.Close()
			if got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", target, got, want)
			}
		}
		if h, _ := p.seen.last(); h.Get("Accept-Encoding") != "gzip" {
			t.Errorf("the client's header became %q", h.Get("Accept-Encoding"))
		}
	})
}

// readAll reads one answer whole, headers and all; they are written in order of name.
func readAll(t *testing.T, c *client) string {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c.in), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var header strings.Builder
	res.Header.Write(&header)
	return res.Status + "\n" + header.String() + string(body)
}

// A long poll is held by the active; when the client goes, its place goes too.
func TestForwardedPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, Config{}, Config{})
		defer p.shutdown()
		holder := p.active.dial(post("/v1/acquire?key=k&lease=3000"))
		defer holder.Close()
		p.wantAnswer(holder, "200 ")

		body := `{"key":"k","poll":50}`
		poll := p.dial(fmt.Sprintf(withBody, len(body), body))
		defer poll.Close()
		begin := time.Now()
		p.wantAnswer(poll, "202 ")
		if took := time.Since(begin); took != maxPoll {
			t.Errorf("held for %v", took)
		}

		leaver := p.dial(post("/v1/acquire?key=k&owner=leaver"))
		if n := p.active.waiting(); n != 2 {
			t.Fatalf("%d wait at the active, want 2", n)
		}
		leaver.Close()
		if n := p.active.waiting(); n != 1 {
			t.Errorf("%d wait after the client has gone, want 1", n)
		}

		// A standby that stops does not wait for the active's polls.
		last := p.dial(post("/v1/acquire?key=k"))
		defer last.Close()
		p.active.waiting()
		p.server.EndPolls()
		p.wantAnswer(last, "503 {\"type\":\"/problems/unavailable\"")
	})
}

// The active believes the client's address from a node that has proved itself, and no header that the client made up.
func TestForwardedAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, Config{}, Config{})
		defer p.shutdown()
		serve := func(s *Server, r *http.Request) string {
			rec := httptest.NewRecorder()
			contract.Handler(t, s.Handler()).ServeHTTP(rec, r)
			return fmt.Sprintf("%d %s", rec.Code, rec.Body.String())
		}
		r := httptest.NewRequest("POST", "http://localhost:7621/v1/acquire?key=k", nil)
		r.RemoteAddr = "192.0.2.77:1234"
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		r.Header.Set("Origin", "http://localhost:7621") // the standby's own page
		if got := serve(p.server, r); !strings.HasPrefix(got, "200 ") {
			t.Fatal(got)
		}
		v, _, _ := p.active.server.node.View([]byte("k"), 1, 0)
		if got := v.Holders[0].Origin.Remote; got != "192.0.2.77:1234" {
			t.Errorf("the active took %q for the client's address", got)
		}

		// A page of another origin is refused where it came.
		r = httptest.NewRequest("POST", "http://localhost:7621/v1/acquire?key=k", nil)
		r.Header.Set("Origin", "http://attacker.test")
		if got := serve(p.server, r); !strings.HasPrefix(got, "403 ") {
			t.Error(got)
		}
	})
}

// The active judges the client's own token: the mark gives no right.
func TestForwardedAuth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		know := func(token string) func(string) (Identity, bool) {
			return func(secret string) (Identity, bool) { return Identity{Name: "alice"}, secret == token }
		}
		p := newPair(t, Config{Authenticate: know("s3cret-a")}, Config{Authenticate: know("s3cret-b")})
		defer p.shutdown()
		for token, want := range map[string]string{"s3cret-a": "the auth token is not one of this node's", "": "this node asks for an auth token"} {
			c := p.dial("GET /v1/lock?key=k HTTP/1.1\r\nHost: localhost\r\nX-Holdfast-Auth: " + token + "\r\n\r\n")
			p.wantAnswer(c, want)
			c.Close()
		}
		if n := len(p.seen.headers); n != 1 {
			t.Errorf("%d requests came to the active, want the one that the standby let pass", n)
		}
	})
}

// One hop: an active that is none any more does not send a forwarded request on.
func TestForwardOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, Config{}, Config{Standby: Forward})
		defer p.shutdown()
		p.active.server.active = func() node.ActiveNode { return node.ActiveNode{Name: "n3", HTTP: []string{"http://n3:7621"}} }
		c := p.dial(post("/v1/acquire?key=k"))
		defer c.Close()
		p.wantAnswer(c, `503 {"type":"/problems/no-active"`)
		p.server.active = func() node.ActiveNode { return node.ActiveNode{} }
		again := p.dial(post("/v1/acquire?key=k"))
		defer again.Close()
		p.wantAnswer(again, `503 {"type":"/problems/no-active"`)
	})
}

// An active that can't be reached, or breaks off, is no reason to hold the client.
func TestForwardFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, Config{}, Config{})
		defer p.shutdown()
		for _, c := range []struct {
			dial func(context.Context, string, string) (net.Conn, error)
			want string
		}{
			{func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}, `503 {"type":"/problems/no-active"`},
			{func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() { http.ReadRequest(bufio.NewReader(far)); far.Close() }()
				return near, nil
			}, `503 {"type":"/problems/unavailable","title":"Unavailable","status":503,"detail":"the active, n2, did not answer: whether it was done is not known"`},
		} {
			p.server.forwarding.DialContext = c.dial
			conn := p.dial(post("/v1/acquire?key=k"))
			p.wantAnswer(conn, c.want)
			conn.Close()
		}
	})
}

// A redirect does not wait for the body; where there is none the connection goes on.
func TestRedirectBeforeTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		p.server.active = func() node.ActiveNode { return node.ActiveNode{Name: "n2", HTTP: []string{"http://n2:7621"}} }
		const head = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
		c := p.dial(head + "\r\n")
		defer c.Close()
		begin := time.Now()
		p.wantAnswer(c, `307 {"status":"moved","active":"n2"`)
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
		io.WriteString(c, `{"key":1}`) // it is taken, so that no reset overtakes the answer
		p.wantAnswer(c, "EOF")

		bare := p.dial(post("/v1/acquire?key=k"))
		defer bare.Close()
		p.wantAnswer(bare, `307 {"status":"moved","active":"n2"`)
		io.WriteString(bare, asClient)
		p.wantAnswer(bare, "200 ")

		// curl asks before it sends more than a kilobyte: it is told not to.
		careful := p.dial(head + "Expect: 100-continue\r\n\r\n")
		defer careful.Close()
		p.wantAnswer(careful, `307 {"status":"moved","active":"n2"`)
	})
}

// A command that the table answers with Moved leads to the active; where clients can't follow, they are asked to repeat.
func TestMoved(t *testing.T) {
	r := httptest.NewRequest("POST", "http://localhost/v1/acquire?key=k", nil)
	at := func() node.ActiveNode { return node.ActiveNode{Name: "n2", HTTP: []string{"http://n2:7621"}} }
	reply := &locks.Reply{Code: locks.Moved}

	redirects := newServer(t, Config{}, nil)
	if a := redirects.refuse(r, "k", reply); a.status != http.StatusServiceUnavailable || a.header["Retry-After"] != "1" {
		t.Errorf("while this node is the active still: %+v", a)
	}
	redirects.active = at
	if a := redirects.refuse(r, "k", reply); a.status != http.StatusTemporaryRedirect || a.header["Location"] != "http://n2:7621/v1/acquire?key=k" {
		t.Errorf("%+v", a)
	}
	forwards := newServer(t, Config{Standby: Forward, Secrets: twoSecrets}, nil)
	forwards.active = at
	if a := forwards.refuse(r, "k", reply); a.status != http.StatusServiceUnavailable || a.body.(*problem).Code != codeNoActive {
		t.Errorf("%+v", a)
	}
}

// A mark proves itself for its request, with each of the secrets, for as long as clocks may differ.
func TestMark(t *testing.T) {
	request := func(method, target string) *http.Request { return httptest.NewRequest(method, "http://n1"+target, nil) }
	r := request("POST", "/v1/acquire?key=a%2Fb")
	now := startOfTokens
	mark := newMark("new-horse-battery", now, r, "192.0.2.1:4444")
	for name, c := range map[string]struct {
		secrets []string
		at      time.Time
		r       *http.Request
		mark    string
		ok      bool
	}{
		"as made":          {twoSecrets(), now, r, mark, true},
		"the other secret": {[]string{"old-horse-battery"}, now, r, mark, false},
		"no secret":        {nil, now, r, mark, false},
		"second secret":    {[]string{"old-horse-battery", "new-horse-battery"}, now, r, mark, true},
		"old":              {twoSecrets(), now.Add(markBound), r, mark, true},
		"too old":          {twoSecrets(), now.Add(markBound + time.Millisecond), r, mark, false},
		"ahead":            {twoSecrets(), now.Add(-markBound), r, mark, true},
		"too far ahead":    {twoSecrets(), now.Add(-markBound - time.Millisecond), r, mark, false},
		"another method":   {twoSecrets(), now, request("GET", "/v1/acquire?key=a%2Fb"), mark, false},
		"another key":      {twoSecrets(), now, request("POST", "/v1/acquire?key=a%2Fc"), mark, false},
		"another path":     {twoSecrets(), now, request("POST", "/v1/release?key=a%2Fb"), mark, false},
		"nothing":          {twoSecrets(), now, r, "", false},
		"cut off":          {twoSecrets(), now, r, mark[:len(mark)-4], false},
		"too long":         {twoSecrets(), now, r, mark + strings.Repeat("A", 400), false},
		"no base64":        {twoSecrets(), now, r, "=" + mark[1:], false},
		"another version":  {twoSecrets(), now, r, "Ag" + mark[2:], false},
	} {
		remote, ok := readMark(c.secrets, c.at, c.r, c.mark)
		if ok != c.ok || ok && remote != "192.0.2.1:4444" {
			t.Errorf("%s: %q, %v; want %v", name, remote, ok, c.ok)
		}
	}
	for i := range mark {
		changed := []byte(mark)
		changed[i] = map[bool]byte{true: 'B', false: 'A'}[changed[i] == 'A']
		if _, ok := readMark(twoSecrets(), now, r, string(changed)); ok {
			t.Errorf("believed with byte %d changed", i)
		}
	}
	if mark == newMark("new-horse-battery", now, r, "192.0.2.1:4444") {
		t.Error("two marks are the same")
	}
	if _, ok := readMark(twoSecrets(), now, r, newMark("new-horse-battery", now, r, strings.Repeat("x", 1000))); !ok {
		t.Error("an address that is too long spoils the mark")
	}
}

// No garbage is believed, and none breaks the reader.
func FuzzMark(f *testing.F) {
	r := httptest.NewRequest("POST", "http://n1/v1/acquire?key=k", nil)
	f.Add(newMark("somebody else's secret", startOfTokens, r, "192.0.2.1:4444"))
	f.Add("")
	f.Add("AQ")
	f.Add(strings.Repeat("A", 300))
	f.Fuzz(func(t *testing.T, text string) {
		if remote, ok := readMark(twoSecrets(), startOfTokens, r, text); ok {
			t.Errorf("believed, from %q", remote)
		}
	})
}

// Without a secret there is nobody to forward to, and no mark to believe.
func TestForwardNeedsASecret(t *testing.T) {
	s := newServer(t, Config{Standby: Forward}, nil)
	if s.forwards() {
		t.Error("forwards without a secret")
	}
}
