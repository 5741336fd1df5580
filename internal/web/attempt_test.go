package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/locks"
)

// The turn of an attempt whose ticket nobody knows comes after its session was
// closed and before it is withdrawn: the grant is given back.
func TestTurnComesWhileLeaving(t *testing.T) {
	s := newServer(t, Config{}, nil)
	key := []byte("k")
	replies := make(watcher, 10)
	holder := s.node.Open(locks.Origin{}, replies)
	defer holder.Close()
	holder.Do([]locks.Command{{Op: locks.OpAcquire, Key: key}})
	held := replies.expect(t, locks.Granted)

	a := s.newAttempt(httptest.NewRequest("POST", "http://localhost/v1/acquire", nil), acquireInput{key: "k"})
	a.sess = s.node.Open(a.from, a.box)
	c, _ := a.command()
	a.sess.Do([]locks.Command{c})
	a.sess.Close()
	holder.Do([]locks.Command{{Op: locks.OpRelease, Key: key, Token: held.Token}})
	if v, _, _ := s.node.View(key, 1, 1); v.HoldersTotal != 1 {
		t.Fatal("the turn did not come")
	}
	a.leave()
	if v, _, _ := s.node.View(key, 1, 1); v.HoldersTotal != 0 {
		t.Errorf("still held: %+v", v.Holders)
	}
}

// A lease that is extended over HTTP stays with the connection that has the
// grant: it lives with that one, and hears of its end there.
func TestExtendLeavesTheGrantWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toTokenTime()
		s := newServer(t, Config{}, nil)
		h := contract.Handler(t, s.Handler())
		time.Sleep(time.Millisecond)
		replies := make(watcher, 10)
		conn := s.node.Open(locks.Origin{Transport: "native"}, replies)
		defer conn.Close()
		conn.Do([]locks.Command{{Op: locks.OpAcquire, Flags: locks.Bound, Key: []byte("k"), Lease: 10 * time.Second}})
		if r := replies.expect(t, locks.Granted); r.Token != 16000 {
			t.Fatalf("token %d", r.Token)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("POST", "http://localhost/v1/extend?key=k&token=16000&lease=15", nil))
		if rec.Code != 200 {
			t.Fatal(rec.Body.String())
		}
		begin := time.Now()
		r := replies.expect(t, locks.Lost)
		if took := time.Since(begin); took != 15*time.Second || r.Reason != locks.ByExpiry {
			t.Errorf("lost after %v by %v", took, r.Reason)
		}
	})
}

// What comes unasked is dropped, and a reply too many is a fault that shows.
func TestInbox(t *testing.T) {
	b := newInbox()
	b.Push(&locks.Reply{Code: locks.Lost})
	b.Push(&locks.Reply{Op: locks.OpAcquire, Code: locks.Queued, Key: []byte("borrowed")})
	b.Push(&locks.Reply{Op: locks.OpAcquire, Code: locks.Granted})
	b.Push(&locks.Reply{Code: locks.ContendedPush})
	if r := <-b; r.Code != locks.Queued || r.Key != nil {
		t.Errorf("got %+v", r)
	}
	b.Push(&locks.Reply{Op: locks.OpRelease, Code: locks.Released})
	defer func() {
		if recover() == nil {
			t.Error("the third reply was taken")
		}
	}()
	b.Push(&locks.Reply{Op: locks.OpRelease, Code: locks.Released})
}

// A panic below the API ends the process, although net/http and observe
// recover what handlers panic with.
func TestTablePanicEndsTheProcess(t *testing.T) {
	const inChild = "WEB_TEST_PANIC"
	if os.Getenv(inChild) != "" {
		s := newServer(t, Config{}, nil)
		h := s.observe(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			s.ask(r.Context(), locks.Origin{}, locks.Command{Op: 255}) // no op of the table
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/", nil))
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestTablePanicEndsTheProcess$")
	child.Env = append(os.Environ(), inChild+"=1")
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "panic: web: locks: unknown op") {
		t.Errorf("%v\n%s", err, out)
	}
}
