package native

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/node"
	"holdfast/wire"
)

// failingListener fails so many times before it accepts.
type failingListener struct {
	*memoryListener
	left int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.left > 0 {
		l.left--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.memoryListener.Accept()
}

// Lack of file descriptors does not end the server: it waits longer and longer,
// at most a second, and tries again.
func TestAcceptErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		logged := newRecords()
		f := start(t, inMemory, func(_ *node.Config, c *Config) { c.Logger = slog.New(logged) })
		f.stop()
		ln := &failingListener{newMemoryListener(), 12}
		f.srv, f.ln, f.dial = New(f.srv.cfg), ln, ln.dial
		began := time.Now()
		f.run()
		f.greet("a")
		// 5, 10, 20, ... 640 ms, then four times a second.
		if took, want := time.Since(began), 1275*time.Millisecond+4*time.Second; took != want {
			t.Errorf("accepted after %v, want %v", took, want)
		}
		if !strings.Contains(logged.String(), "too many open files") {
			t.Errorf("logged:\n%s", logged)
		}
	})
}

// A listener that is closed by others ends the server with an error.
func TestListenerClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory)
		f.stop()
		srv, ln := New(f.srv.cfg), newMemoryListener()
		ended := make(chan error)
		go func() { ended <- srv.Serve(context.Background(), ln) }()
		f.dial = ln.dial
		c := f.greet("a")
		ln.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
		c.ended()
	})
}

// A stop before Serve is not lost.
func TestShutdownBeforeServe(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv, ln := New(DefaultConfig(start(t, inMemory).node)), newMemoryListener()
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := srv.Serve(t.Context(), ln); err != nil {
			t.Error(err)
		}
	})
}

// The end of the context ends every connection at once, whatever it does.
func TestContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory)
		idle, waiting, raw := f.greet("idle"), f.greet("waiting"), f.connect("raw")
		idle.send(acquireOf(1, "k"))
		waiting.send(acquireOf(1, "k"))
		raw.sendBytes([]byte{0, 0})
		synctest.Wait()
		began := time.Now()
		f.stop()
		for _, c := range []*client{idle, waiting, raw} {
			c.ended()
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		if n := f.node.Status().Sessions; n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// A connection above the limit is told so; every admission is given back once.
func TestAdmission(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var admitted, released atomic.Int64
		f := start(t, inMemory, func(_ *node.Config, c *Config) {
			c.Admit = func(netip.Addr) (func(), bool) {
				if admitted.Load()-released.Load() == 2 {
					return nil, false
				}
				admitted.Add(1)
				return func() { released.Add(1) }, true
			}
		})
		a, b := f.greet("a"), f.greet("b")
		replies, _ := f.connect("c").ended()
		if len(replies) != 1 || replies[0].Op != wire.OpError || replies[0].Code != wire.CodeLimit {
			t.Errorf("the third connection read %v", replies)
		}
		a.close()
		synctest.Wait()
		f.greet("d")
		b.close()
		f.stop()
		if admitted.Load() != 3 || released.Load() != 3 {
			t.Errorf("%d admitted, %d released", admitted.Load(), released.Load())
		}
	})
}

// Refusals need nothing for long: beyond a number of them at once a connection
// is closed without a word.
func TestManyRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory, func(_ *node.Config, c *Config) {
			c.Admit = func(netip.Addr) (func(), bool) { return nil, false }
		})
		var silent []net.Conn
		for range refusalsAtOnce {
			silent = append(silent, f.dial()) // never reads: the refusal stays unwritten
		}
		synctest.Wait()
		if replies, _ := f.connect("late").ended(); len(replies) != 0 {
			t.Errorf("read %v", replies)
		}
		time.Sleep(f.srv.cfg.FlushTimeout)
		synctest.Wait()
		if replies, _ := f.connect("later").ended(); len(replies) != 1 {
			t.Errorf("read %v", replies)
		}
		for _, nc := range silent {
			nc.Close()
		}
	})
}

// Log lines that anybody can bring about are limited, and what was left out is
// counted.
func TestLogLimiter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		logged := newRecords()
		l := newLimiter(slog.New(logged))
		for range 3 * linesPerSecond {
			l.limited(slog.LevelWarn, "again", "n", 1)
			l.limited(slog.LevelDebug-1, "too low")
		}
		l.limited(slog.LevelWarn, "another")
		time.Sleep(time.Second)
		l.limited(slog.LevelWarn, "again")
		if n := strings.Count(logged.String(), "msg=again"); n != linesPerSecond+1 {
			t.Errorf("%d lines", n)
		}
		if !strings.HasSuffix(logged.String(), "msg=again omitted_before=20\n") || strings.Contains(logged.String(), "low") {
			t.Errorf("logged:\n%s", logged)
		}
	})
}

// Secrets are never logged, and failures are.
func TestAuthFailureIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		logged := newRecords()
		f := start(t, inMemory, func(_ *node.Config, c *Config) {
			c.Logger = slog.New(logged)
			c.Authenticate = func([]byte) (string, bool) { return "", false }
		})
		c := f.connect("c")
		c.send(wire.Request{Op: wire.OpHello, Version: 1, Auth: []byte("hunter2"), Owner: []byte("o")})
		c.ended()
		f.stop()
		if s := logged.String(); !strings.Contains(s, "authentication failed") || strings.Contains(s, "hunter2") {
			t.Errorf("logged:\n%s", s)
		}
	})
}
