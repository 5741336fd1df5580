package client

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestReady(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Latency = 100 * time.Millisecond
		b.c = b.client(b.addrs())
		began := time.Now()
		if err := b.c.Ready(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.took(began, 200*time.Millisecond, 0)
		if sent := b.nodes[0].Requests(); len(sent) > 0 {
			b.Errorf("sent %v", sent)
		}
	})
}

func TestReadyFindsTheActive(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "", "")
		b.nodes[1].SetRole(wire.RoleStandby, "", "")
		b.nodes[2].SetRole(wire.RoleStandby, "", "")
		b.dial()
		short, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		b.is(b.c.Ready(short), ErrNoActive, context.DeadlineExceeded)

		ready := make(chan error, 1)
		go func() { ready <- b.c.Ready(context.Background()) }()
		time.Sleep(time.Minute)
		b.nodes[1].SetRole(wire.RoleActive, "", "") // which nobody tells
		if err := <-ready; err != nil {
			b.Error(err)
		}
		if got := b.c.Status().Active; got != "n2" {
			b.Errorf("active %q", got)
		}
	})
}

// Two requests are under way to a standby as it is promoted: the first is sent elsewhere, the second is served. The
// client goes on with that node.
func TestPromotedBetweenTwoAnswers(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "", "")
		b.nodes[1].SetRole(wire.RoleStandby, "", "")
		b.dial()
		b.c.suspect()
		n := b.c.pick()
		b.c.moved(n, "", "")
		b.c.serves(n)
		if b.c.pick() != n {
			b.Error("the node that serves is not asked next")
		}
	})
}

// A token that allows some keys only does not keep Ready from its answer.
func TestReadyWithALimitedToken(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].SetRole(wire.RoleStandby, "", "")
		b.dial()
		b.nodes[0].SetHook(once(wire.OpRelease, func(c *fakeserver.Conn, r *wire.Request) {
			c.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeNotAllowed, Message: []byte("no")})
		}))
		if err := b.c.Ready(b.Context()); err != nil {
			b.Error(err)
		}
	})
}

func TestStatus(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.dial()
		l := b.acquire("jobs")
		b.start(b.Context(), "jobs")
		s := b.c.Status()
		if s.Active != "n1" || s.Held != 1 || len(s.Conns) != 2 {
			b.Fatalf("%+v", s)
		}
		if c := s.Conns[0]; c.Addr != "n1:7620" || c.Node != "n1" || !c.Connected || c.Standby || c.Pending != 1 || c.Err != nil || c.Followed {
			b.Errorf("%+v", c)
		}
		if c := s.Conns[1]; c.Addr != "n2:7620" || c.Node != "n2" || !c.Connected || !c.Standby || c.Pending != 0 || c.Err != nil {
			b.Errorf("%+v", c)
		}
		if k := s.Counters; k.Acquires != 2 || k.Grants != 1 || k.Connects != 2 {
			b.Errorf("%+v", k)
		}
		b.net.Set("n2:7620", fakeserver.Refusing)
		b.nodes[1].CutAll()
		time.Sleep(2 * time.Second)
		if c := b.c.Status().Conns[1]; c.Connected || c.Err == nil || c.Node != "n2" || c.Since.IsZero() {
			b.Errorf("%+v", c)
		}
		b.release(l)
		synctest.Wait()
		if s = b.c.Status(); s.Held != 1 || s.Counters.Releases != 1 {
			b.Errorf("%+v", s)
		}
	})
}

func TestWithObserver(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		var mu sync.Mutex
		var seen []string
		b.dial(WithObserver(func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			text := e.Kind.String()
			for _, s := range []string{e.Addr, e.Node, e.Key} {
				if s != "" {
					text += " " + s
				}
			}
			seen = append(seen, text)
		}))
		l := b.acquire("jobs")
		if err := l.Extend(b.Context(), time.Minute); err != nil {
			b.Fatal(err)
		}
		b.release(l)
		b.nodes[1].SetRole(wire.RoleActive, "", "")
		b.nodes[0].SetRole(wire.RoleStandby, "n2:7620", "n2")
		<-b.acquire("jobs", WithLease(time.Second)).Context().Done()
		b.nodes[0].Conns()[0].Cut()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, want := range []string{"connected n1:7620 n1", "connected n2:7620 n2", "active n1:7620 n1", "granted jobs", "extended jobs",
			"released jobs", "moved n2:7620 n2", "active n2:7620 n2", "lost jobs", "disconnected n1:7620 n1"} {
			if !strings.Contains(strings.Join(seen, "\n")+"\n", want+"\n") {
				b.Errorf("no %q in\n%s", want, strings.Join(seen, "\n"))
			}
		}
	})
}

func TestWithLogger(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		var mu sync.Mutex
		var out bytes.Buffer
		b.nodes[0].Auth = "s3cret"
		b.dial(WithAuthToken("s3cret"), WithLogger(slog.New(slog.NewTextHandler(lockedWriter{&mu, &out}, nil))))
		l := b.acquire("jobs\u2028", WithLease(time.Second))
		<-l.Context().Done()
		b.outage(20 * time.Second)
		time.Sleep(20 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		text := out.String()
		for _, want := range []string{"msg=connected addr=n1:7620 node=n1 role=active", "msg=disconnected", `msg="lock lost" key="jobs\u2028" token=1 reason="its lease ran out"`} {
			if !strings.Contains(text, want) {
				b.Errorf("no %q in\n%s", want, text)
			}
		}
		if n := strings.Count(text, "cannot connect"); n != 2 { // once for each connection, not for each attempt
			b.Errorf("%d lines about one outage:\n%s", n, text)
		}
		if strings.Contains(text, "s3cret") {
			b.Error("the log shows the secret")
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}
