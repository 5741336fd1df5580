//go:build linux

package cluster

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/wire"
)

// quick takes nodes of higher priority back soon.
const quick = "HOLDFAST_TAKEBACK_DELAY=200ms"

// C-50: an active that is told to stop hands over: the successor serves at once, nothing is lost, no client notices.
func TestStopTheActive(t *testing.T) {
	s := startSet(t, 3)
	l := startLoad(t, s, time.Minute)
	mark := s.nodes[1].life.mark()
	began := time.Now()
	if code := s.nodes[0].stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	took := s.nodes[1].life.awaitLine(t, "its promotion", mark, isRole).at.Sub(began)
	if took > 500*time.Millisecond {
		t.Errorf("the successor became active after %v", took)
	}
	s.settled(s.nodes[1])
	l.finish()
}

// C-44: all nodes are restarted one after the other, the active last, while clients work.
func TestRollingRestart(t *testing.T) {
	s := startSet(t, 3, quick)
	l := startLoad(t, s, time.Minute)
	for _, i := range []int{2, 1, 0} {
		n := s.nodes[i]
		if code := n.stop(); code != 0 {
			t.Errorf("%s: exit code %d", n.name, code)
		}
		n.start()
		l.more(t, 100)
		s.settled(s.nodes[0])
	}
	l.finish()
}

// C-51: a standby that stops changes nothing for the others.
func TestStopAStandby(t *testing.T) {
	s := startSet(t, 3)
	l := startLoad(t, s, time.Minute)
	for _, n := range []*node{s.nodes[1], s.nodes[2]} {
		if code := n.stop(); code != 0 {
			t.Errorf("%s: exit code %d", n.name, code)
		}
		l.more(t, 100)
	}
	l.finish()
	if changes := s.nodes[0].life.since(0, isRole); len(changes) != 1 {
		t.Errorf("the active changed its role: %+v", changes)
	}
	for _, n := range []*node{s.nodes[1], s.nodes[2]} {
		for _, change := range n.life.since(0, isRole) {
			if change.Role == "active" {
				t.Errorf("%s became active: %s", n.name, change.text)
			}
		}
	}
}

// C-51: the last node has nobody to hand over to. Those who wait are told, and it ends in time.
func TestStopTheLastNode(t *testing.T) {
	const waiters = 1000
	s := newSet(t, 2, "HOLDFAST_START_GRACE=1100ms")
	n := s.nodes[0]
	n.start()
	n.awaitRole("active")
	c := n.must()
	n.done(c, try("job", longHold), wire.StatusGranted)
	var answers []<-chan wire.Reply
	for range waiters {
		answer, err := c.begin(acquire("job", longHold))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	n.done(c, wire.Request{Op: wire.OpPing}, wire.StatusPong)
	began := time.Now()
	if code := n.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the exit took %v", took)
	}
	<-c.gone
	for i, answer := range answers {
		select {
		case r := <-answer:
			if r.Status != wire.StatusMoved || len(r.Addr) > 0 {
				t.Fatalf("waiter %d was answered %c, address %q, want M and none", i, r.Status, r.Addr)
			}
		default:
			t.Fatalf("waiter %d was not answered", i)
		}
	}
}

// C-52: the successor hangs when it is needed. The active tries it for a bounded time and hands over to the next; the
// one that hung joins when it goes on, and takes over by the ordinary rule.
func TestStopWhileTheSuccessorHangs(t *testing.T) {
	s := startSet(t, 3, quick)
	l := startLoad(t, s, time.Minute)
	s.nodes[1].pause()
	began, mark := time.Now(), s.nodes[2].life.mark()
	if code := s.nodes[0].stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	change := s.nodes[2].life.awaitLine(t, "its promotion", mark, isRole)
	if took := change.at.Sub(began); change.Role != "active" || took > 2*time.Second {
		t.Errorf("after %v the third node became %s (%s)", took, change.Role, change.Reason)
	}
	s.nodes[1].resume()
	s.settled(s.nodes[1])
	l.finish()
}

// C-52: the successor dies when it is needed: before the hand-off, as it begins, or as soon as it serves. The third node
// serves then, and only the last of these is a crash of an active, which can lose what it answered.
func TestStopWhileTheSuccessorDies(t *testing.T) {
	for name, die := range map[string]func(one, two *node){
		"at once": func(_, two *node) { two.kill() },
		"as it begins": func(one, two *node) {
			one.life.awaitLine(t, "the hand-off", 0, func(l line) bool { return l.Event == "hand-off begins" })
			two.kill()
		},
		"when it serves": func(_, two *node) {
			two.awaitRole("active")
			two.kill()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSet(t, 3)
			one, two, three := s.nodes[0], s.nodes[1], s.nodes[2]
			l := startLoad(t, s, shortLease)
			at := l.now()
			one.life.signal(t, syscall.SIGTERM)
			die(one, two)
			if two.life.is("active") {
				l.declare(fault{crash, at, l.now() + instant(300*time.Millisecond)})
			}
			if code := one.life.exit(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			s.settled(three)
			l.finish()
		})
	}
}

// C-53: those who wait over HTTP are answered when their node stops, and do not hold it up.
func TestStopWithLongPolls(t *testing.T) {
	const polls = 200
	s := startSet(t, 3)
	one := s.nodes[0]
	one.done(one.must(), try("job", longHold), wire.StatusGranted)
	var asked sync.WaitGroup
	for i := range polls {
		asked.Go(func() {
			r, err := s.http.Transport.RoundTrip(one.newPost(fmt.Sprintf("/v1/acquire?key=job&poll=40&ticket=%032x", i+1)))
			if err != nil {
				t.Errorf("request %d was not answered: %v", i, err)
				return
			}
			r.Body.Close()
			if r.StatusCode != 202 && r.StatusCode != 307 && r.StatusCode != 503 {
				t.Errorf("request %d was answered %d", i, r.StatusCode)
			}
		})
	}
	one.awaitState("everybody to wait", func(is state) bool { return is.Waiters == polls })
	began := time.Now()
	if code := one.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the exit took %v", took)
	}
	asked.Wait()
	s.settled(s.nodes[1])
}

func (n *node) newPost(path string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, n.url()+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return r
}
