package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/cmd/holdfast/internal/fakeserver"
	"holdfast/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var plain = Config{AuthToken: "secret", Owner: "owner", Software: "test/1", Timeout: 2 * time.Second}

// network is what a test dials: servers by address, nil for one that refuses.
type network map[string]*fakeserver.Server

func (n network) config() Config {
	cfg := plain
	cfg.Dial = func(_ context.Context, _, addr string) (net.Conn, error) {
		server := n[addr]
		if server == nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		ours, theirs := net.Pipe()
		go server.Serve(theirs)
		return ours, nil
	}
	return cfg
}

// answering returns a server that answers releases and extends by f, which gets the number of the request.
func answering(f func(n int) *wire.Reply) *fakeserver.Server {
	server := fakeserver.NewServer()
	n := 0
	server.Intercept = func(c *fakeserver.Conn, r *wire.Request) bool {
		if r.Op == wire.OpHello {
			return false
		}
		n++
		if answer := f(n); answer != nil {
			c.Reply(r, *answer)
		} else {
			c.Close()
		}
		return true
	}
	return server
}

func always(answer wire.Reply) *fakeserver.Server {
	return answering(func(int) *wire.Reply { return &answer })
}

func moved(addr string) wire.Reply {
	return wire.Reply{Status: wire.StatusMoved, Addr: []byte(addr)}
}

func TestHello(t *testing.T) {
	server := fakeserver.NewServer()
	server.Hello.Role, server.Hello.Addr, server.Hello.ActiveNode = wire.RoleStandby, []byte("10.0.0.9:7620"), []byte("n9")
	var got string
	server.Intercept = func(_ *fakeserver.Conn, r *wire.Request) bool {
		got = fmt.Sprintf("%v %s", r, r.Auth)
		return false
	}
	c, err := Dial(t.Context(), server.Start(t), plain)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := Welcome{
		Role: wire.RoleStandby, Node: "fake", Active: "10.0.0.9:7620", ActiveNode: "n9", Software: "fake/1",
		MaxKeyBytes: 1024, DefaultLease: 30 * time.Second, MaxLease: 24 * time.Hour,
	}
	if c.Welcome != want {
		t.Errorf("welcome %+v; want %+v", c.Welcome, want)
	}
	if want := `hello #1 version=1 auth=6 bytes owner="owner" software="test/1" secret`; got != want {
		t.Errorf("the server got %s; want %s", got, want)
	}
}

func TestDialErrors(t *testing.T) {
	speaking := func(text string) *fakeserver.Server {
		server := fakeserver.NewServer()
		server.Intercept = func(c *fakeserver.Conn, _ *wire.Request) bool {
			c.Write(text)
			c.Close()
			return true
		}
		return server
	}
	for name, c := range map[string]struct {
		server *fakeserver.Server
		want   string
	}{
		"HTTP":    {speaking("HTTP/1.1 400 Bad Request\r\n\r\n"), "not Holdfast's native protocol: this is an HTTP port; give the native one (7620 by default)"},
		"TLS":     {speaking("\x15\x03\x01\x00\x02\x02\x46"), "not Holdfast's native protocol: this port wants TLS; add --tls"},
		"closed":  {speaking(""), "the server closed the connection; if that port wants TLS, add --tls"},
		"refused": {always(wire.Reply{}), "wrong token (error 2)"},
		"unknown": {speaking(string(wire.AppendReply(nil, &wire.Reply{Op: wire.OpPing, Status: wire.StatusPong}))), `hello was answered by "pong"`},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "refused" {
				c.server.Intercept = func(conn *fakeserver.Conn, r *wire.Request) bool {
					conn.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeUnauthenticated, Message: []byte("wrong token")})
					return true
				}
			}
			if conn, err := Dial(t.Context(), c.server.Start(t), plain); err == nil {
				conn.Close()
				t.Error("no error")
			} else if err.Error() != c.want {
				t.Errorf("error %v; want %s", err, c.want)
			}
		})
	}
}

func TestDialTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.NewServer()
		server.Intercept = func(*fakeserver.Conn, *wire.Request) bool { return true }
		start := time.Now()
		_, err := Dial(t.Context(), "a", network{"a": server}.config())
		if err == nil || time.Since(start) != plain.Timeout {
			t.Errorf("error %v after %v; want one after %v", err, time.Since(start), plain.Timeout)
		}
	})
}

// Frames larger and smaller than what one read brings arrive whole.
func TestNextReassemblesFrames(t *testing.T) {
	server := fakeserver.NewServer()
	const n = 200
	server.Intercept = func(c *fakeserver.Conn, r *wire.Request) bool {
		if r.Op != wire.OpPing {
			return false
		}
		var stream []byte
		for i := range n {
			stream = wire.AppendReply(stream, &wire.Reply{
				Op: wire.OpAcquire, Status: wire.StatusError, ID: uint32(i + 1), Message: []byte(strings.Repeat("x", i*40)),
			})
		}
		for len(stream) > 0 {
			part := stream[:min(len(stream), 7777)]
			c.Write(string(part))
			stream = stream[len(part):]
		}
		return true
	}
	c, err := Dial(t.Context(), server.Start(t), plain)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Queue(&wire.Request{Op: wire.OpPing, ID: 1})
	for i := range n {
		var r wire.Reply
		if err := c.Next(&r); err != nil {
			t.Fatal(err)
		}
		if r.ID != uint32(i+1) || len(r.Message) != i*40 {
			t.Fatalf("frame %d: id %d, message of %d bytes", i, r.ID, len(r.Message))
		}
	}
}

// A burst larger than what is written at once leaves without waiting for Next.
func TestQueueWritesLargeBursts(t *testing.T) {
	server := fakeserver.NewServer()
	seen := make(chan uint32, 10_000)
	server.Intercept = func(_ *fakeserver.Conn, r *wire.Request) bool {
		if r.Op == wire.OpPing {
			seen <- r.ID
		}
		return false
	}
	c, err := Dial(t.Context(), server.Start(t), plain)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const enough = flushBytes/wire.HeaderBytes + 1
	for i := range enough {
		c.Queue(&wire.Request{Op: wire.OpPing, ID: uint32(i + 1)})
	}
	for i := range enough - 1 {
		if id := <-seen; id != uint32(i+1) {
			t.Fatalf("request %d has id %d", i, id)
		}
	}
}

func TestAsk(t *testing.T) {
	released := wire.Reply{Status: wire.StatusReleased}
	none := wire.Reply{Status: wire.StatusNone}
	busy := wire.Reply{Status: wire.StatusError, Code: wire.CodeUnavailable, Message: []byte("starting")}
	denied := wire.Reply{Status: wire.StatusError, Code: wire.CodeNotAllowed, Message: []byte("not your key")}
	standby := fakeserver.NewServer()
	standby.Intercept = func(c *fakeserver.Conn, r *wire.Request) bool {
		if r.Op != wire.OpHello {
			c.Reply(r, moved("active"))
		}
		return r.Op != wire.OpHello
	}
	for name, c := range map[string]struct {
		network network
		addrs   string
		want    string
		took    time.Duration
	}{
		"active":               {network{"a": always(released)}, "a", "released", 0},
		"second address":       {network{"b": always(released)}, "a b", "released", 0},
		"redirect":             {network{"a": standby, "active": always(none)}, "a", "not held", 0},
		"push first":           {network{"a": pushing(released)}, "a", "released", 0},
		"redirected in a ring": {network{"a": always(moved("b")), "b": always(moved("a"))}, "a", "a: no active node is known: redirected 3 times", 5 * time.Second},
		"no active known":      {network{"a": always(moved(""))}, "a", "a: no active node is known", 5 * time.Second},
		"nobody there":         {network{}, "a b", "a: connection refused; b: connection refused", 5 * time.Second},
		"denied":               {network{"a": always(denied)}, "a", "a: not your key (error 3)", 0},
		"unavailable, then not": {network{"a": answering(func(n int) *wire.Reply {
			if n < 3 {
				return &busy
			}
			return &released
		})}, "a", "released", 2 * retryPause},
		"dropped, then gone": {network{"a": answering(func(n int) *wire.Reply {
			if n == 1 {
				return nil
			}
			return &none
		})}, "a", "not held, unsure", retryPause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				start := time.Now()
				answer, err := Ask(ctx, strings.Fields(c.addrs), c.network.config(), &wire.Request{Op: wire.OpRelease, ID: 7, Key: []byte("k"), Token: 1})
				if got := outcome(answer, err); got != c.want {
					t.Errorf("got %s; want %s", got, c.want)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v; want %v", took, c.took)
				}
			})
		})
	}
}

// pushing sends what nobody asked for before each answer.
func pushing(answer wire.Reply) *fakeserver.Server {
	server := fakeserver.NewServer()
	server.Intercept = func(c *fakeserver.Conn, r *wire.Request) bool {
		if r.Op == wire.OpHello {
			return false
		}
		c.Send(wire.Reply{Op: wire.OpLost, Key: r.Key, Token: r.Token, Reason: wire.ReasonExpired})
		c.Reply(r, answer)
		return true
	}
	return server
}

func outcome(a Answer, err error) string {
	if err != nil {
		return err.Error()
	}
	text := map[wire.Status]string{wire.StatusReleased: "released", wire.StatusNone: "not held"}[a.Status]
	if a.Unsure {
		text += ", unsure"
	}
	return text
}

func TestNoAnswerErrorHoldsItsCauses(t *testing.T) {
	err := error(&NoAnswerError{Tries: []error{errors.New("one"), fmt.Errorf("two: %w", syscall.ECONNREFUSED)}})
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error("the cause is lost")
	}
}
