package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/locks"
)

// The tests in this file use real sockets, for what a pipe can't do: resets, and
// bodies larger than what a kernel buffers.

type tcpPort struct {
	t      *testing.T
	server *Server
	addr   string
	ended  chan struct{} // one for each request whose handler has returned
}

func newTCP(t *testing.T) *tcpPort {
	return newTCPOn(t, func(ln net.Listener) net.Listener { return ln })
}

func newTCPOn(t *testing.T, wrap func(net.Listener) net.Listener) *tcpPort {
	s := newServer(t, Config{}, nil)
	checked := contract.Handler(t, s.Handler())
	ended := make(chan struct{}, 1000)
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		checked.ServeHTTP(w, r)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(wrap(ln)) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return &tcpPort{t, s, ln.Addr().String(), ended}
}

func (p *tcpPort) dial(text string) *net.TCPConn {
	p.t.Helper()
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(nc, text); err != nil {
		p.t.Fatal(err)
	}
	return nc.(*net.TCPConn)
}

func (p *tcpPort) answer(nc net.Conn) (int, string) {
	p.t.Helper()
	nc.SetReadDeadline(time.Now().Add(20 * time.Second))
	res, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// watcher is a session's sink that keeps what comes.
type watcher chan locks.Reply

func (w watcher) Push(r *locks.Reply) { w <- *r }
func (w watcher) Flush()              {}

// expect waits for a reply of that code and skips others.
func (w watcher) expect(t *testing.T, code locks.Code) locks.Reply {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case r := <-w:
			if r.Code == code {
				return r
			}
		case <-late:
			t.Fatalf("no %v came", code)
		}
	}
}

// C-18: a waiter whose connection ends by FIN or RST never gets the key, and at
// the moment of the release it does not keep it from the next in line.
func TestWaiterVanishes(t *testing.T) {
	p := newTCP(t)
	key := []byte("k")
	for round := range 100 {
		reset, early := round%2 == 0, round%4 < 2
		replies := make(watcher, 20)
		holder := p.server.node.Open(locks.Origin{}, replies)
		holder.Do([]locks.Command{{Op: locks.OpAcquire, Flags: locks.Contended, Key: key}})
		held := replies.expect(t, locks.Granted)
		waiter := p.dial(post("/v1/acquire?key=k&lease=0.05"))
		replies.expect(t, locks.ContendedPush) // it stands in line
		next := make(watcher, 20)
		second := p.server.node.Open(locks.Origin{}, next)
		second.Do([]locks.Command{{Op: locks.OpAcquire, Key: key}})

		if reset {
			waiter.SetLinger(0)
		}
		release := []locks.Command{{Op: locks.OpRelease, Key: key, Token: held.Token}}
		if early {
			waiter.Close()
			<-p.ended
			if v, _, _ := p.server.node.View(key, 1, 5); v.WaitersTotal != 1 {
				t.Fatalf("round %d: %d wait", round, v.WaitersTotal)
			}
			holder.Do(release)
		} else {
			// Both at once: where the kernel has taken the answer already, its lease ends the grant.
			done := make(chan struct{})
			go func() { waiter.Close(); close(done) }()
			holder.Do(release)
			<-done
			<-p.ended
		}
		got := next.expect(t, locks.Granted)
		second.Do([]locks.Command{{Op: locks.OpRelease, Key: key, Token: got.Token}})
		second.Close()
		holder.Close()
	}
}

// C-75: 100 MiB are refused from their header, without reading them.
func TestHugeBody(t *testing.T) {
	p := newTCP(t)
	for _, framing := range []string{"Content-Length: 104857600\r\n", "Transfer-Encoding: chunked\r\n"} {
		nc := p.dial("POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + framing + "\r\n")
		if strings.HasPrefix(framing, "T") {
			io.WriteString(nc, "6400000\r\n"+strings.Repeat(" ", maxBodyBytes+1))
		}
		if status, body := p.answer(nc); status != http.StatusRequestEntityTooLarge {
			t.Errorf("%d %s", status, body)
		}
		nc.Close()
	}
}
