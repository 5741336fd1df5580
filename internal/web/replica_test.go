package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// echoing is a Replica that takes over every connection that says so, and
// sends back each byte on it.
func echoing(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proof") != "right" {
			w.Header().Set("Connection", "close")
			http.Error(w, "no proof", http.StatusUnauthorized)
			return
		}
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error("hijack:", err)
			return
		}
		defer nc.Close()
		if _, ok := nc.(interface{ NetConn() net.Conn }); !ok {
			t.Errorf("%T has no NetConn: options of its socket can't be set", nc)
		}
		io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		io.Copy(nc, nc)
	})
}

// admitting counts what Admit has let in, up to most.
type admitting struct{ open, most atomic.Int32 }

func (a *admitting) admit(net.Addr) (func(), bool) {
	if a.open.Load() >= a.most.Load() {
		return nil, false
	}
	a.open.Add(1)
	return func() { a.open.Add(-1) }, true
}

func newReplicaPort(t *testing.T, most int32) (*port, *admitting) {
	a := &admitting{}
	a.most.Store(most)
	p := newPort(t, Config{Replica: echoing(t), ReplicaPath: "/replica", Admit: a.admit})
	p.server.http.Handler = p.server.Handler() // the document is about clients that have a place
	return p, a
}

const (
	asPeer   = "GET /replica HTTP/1.1\r\nHost: attacker.test\r\nProof: right\r\n\r\n" // no host is checked
	asClient = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
)

// echo says whether a taken over connection works.
func (p *port) echo(c *client) {
	p.t.Helper()
	io.WriteString(c, "x")
	if b, err := c.in.ReadByte(); b != 'x' {
		p.t.Errorf("no echo: %v", err)
	}
}

func (p *port) link(c *client) {
	p.t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		p.t.Fatalf("no link: %v, %v", res, err)
	}
	p.echo(c)
}

// A link outlives every time limit of the server, and is counted nowhere.
func TestLinkIsNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := newReplicaPort(t, 1)
		c := p.dial(asPeer)
		p.link(c)
		if n := a.open.Load(); n != 0 {
			t.Errorf("%d connections are counted", n)
		}
		time.Sleep(24 * time.Hour)
		p.echo(c)
		first := p.dial(asClient)
		p.wantAnswer(first, "200 ")
		first.Close()
		p.shutdown()
		p.echo(c) // who ends the links is not this port
		c.Close()
		synctest.Wait()
		if n := a.open.Load(); n != 0 {
			t.Errorf("%d connections are counted after all have gone", n)
		}
	})
}

// Where clients have taken every place, a peer is let in all the same and
// anything else is answered that the node is full.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newReplicaPort(t, 0)
		defer p.shutdown()
		for _, request := range []string{asClient, post("/v1/acquire?key=k"), "GET /nope HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
			c := p.dial(request)
			p.wantAnswer(c, "503 {\"type\":\"/problems/unavailable\"")
			p.wantAnswer(c, "EOF")
		}
		wrong := p.dial("GET /replica HTTP/1.1\r\nHost: localhost\r\n\r\n")
		p.wantAnswer(wrong, "401 no proof")
		p.wantAnswer(wrong, "EOF")

		// Clients that say nothing can't keep the peers out.
		var silent []*client
		for range 3 * reserved {
			silent = append(silent, p.dial(""))
		}
		peer := p.dial(asPeer)
		p.link(peer)
		synctest.Wait()
		if n := len(p.server.reserve.conns); n != reserved-1 {
			t.Errorf("%d connections in the reserve, want %d: the peer's is out, and the oldest made room", n, reserved-1)
		}
		time.Sleep(headerTimeout + time.Second)
		if n := len(p.server.reserve.conns); n != 0 {
			t.Errorf("%d connections in the reserve after the time for a header", n)
		}
		p.echo(peer)
		peer.Close()
		for _, c := range silent {
			c.Close()
		}
	})
}

// The places of the reserve are given back however a connection ends.
func TestReservePlaces(t *testing.T) {
	v := &reserve{}
	var conns []*admitted
	for i := range reserved + 3 {
		near, far := net.Pipe()
		defer near.Close()
		conns = append(conns, v.admit(far))
		if n := len(v.conns); n != min(i+1, reserved) {
			t.Fatalf("%d of %d have a place", n, i+1)
		}
	}
	for i, c := range conns[:3] {
		if _, err := c.Write([]byte("x")); err == nil {
			t.Errorf("connection %d, the oldest, was not closed", i)
		}
	}
	for i, c := range conns {
		c.leave()
		c.Close()
		if n, want := len(v.conns), min(reserved, len(conns)-1-i); n != want {
			t.Fatal(fmt.Sprintf("after %d: %d places taken, want %d", i, n, want))
		}
	}
}
