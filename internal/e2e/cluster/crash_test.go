//go:build linux

package cluster

import (
	"testing"
	"time"

	"holdfast/wire"
)

// shortLease is what a key can be blocked for when a crash has lost a release.
const shortLease = 2 * time.Second

// lossy declares what a crash may lose: what was answered shortly before, the answers that were still on their way to
// the clients included.
func (l *load) lossy(at instant) {
	const before, after = instant(100 * time.Millisecond), instant(300 * time.Millisecond)
	l.declare(fault{crash, at - before, at + after})
}

// kill kills an active whose answers wait for an acknowledgement: only a place in line, which is no answer, may be lost.
func (l *load) kill(n *node) {
	const before = instant(100 * time.Millisecond)
	at := l.now()
	n.kill()
	l.declare(fault{place, at - before, l.now()})
}

// The active is killed. Without acknowledgements the last instants may be lost, but nothing older.
func TestKillTheActive(t *testing.T) {
	s := startSet(t, 3)
	l := startLoad(t, s, shortLease)
	at := l.now()
	s.nodes[0].kill()
	l.lossy(at)
	s.settled(s.nodes[1])
	l.finish()
}

// With acknowledgements every answer survives.
func TestKillTheActiveWithAck(t *testing.T) {
	s := startSet(t, 3, "HOLDFAST_REPLICATION=ack")
	l := startLoad(t, s, time.Minute)
	l.kill(s.nodes[0])
	s.settled(s.nodes[1])
	l.finish()
}

// The active is killed and back at once with empty hands, within the suspicion time: it must not serve with them, but
// follow, and take over with all that the others hold.
func TestKillAndRestartTheActive(t *testing.T) {
	s := startSet(t, 3, quick, "HOLDFAST_REPLICATION=ack")
	l := startLoad(t, s, time.Minute)
	for range 2 {
		l.kill(s.nodes[0])
		s.nodes[0].start()
		s.settled(s.nodes[0])
		l.more(t, 100)
	}
	l.finish()
}

// C-47: the second node dies as well; the third has all that the first one knew.
func TestKillOneAfterTheOther(t *testing.T) {
	s := startSet(t, 3, "HOLDFAST_REPLICATION=ack")
	l := startLoad(t, s, time.Minute)
	l.kill(s.nodes[0])
	s.settled(s.nodes[1])
	l.more(t, 100)
	l.kill(s.nodes[1])
	s.settled(s.nodes[2])
	l.finish()
}

// A paused active finds requests in its sockets when it goes on. It has been replaced, and grants none of them: it says
// who serves now.
func TestPauseTheActive(t *testing.T) {
	s := startSet(t, 3, "HOLDFAST_PREEMPT=false")
	l := startLoad(t, s, shortLease)
	old, next := s.nodes[0], s.nodes[1]
	c := old.must()
	at := l.now()
	old.pause()
	const requests = 50
	answers := make([]<-chan wire.Reply, requests)
	for i := range answers {
		r := try("asked while paused", longHold)
		if i == 0 {
			r = extend(l.standing[0].a.key, l.standing[0].a.token, longHold)
		}
		var err error
		if answers[i], err = c.begin(r); err != nil {
			t.Fatal(err)
		}
	}
	next.awaitRole("active")
	l.declare(fault{crash, at - instant(100*time.Millisecond), l.now()})
	l.more(t, 100)
	old.resume()
	for i, answer := range answers {
		select {
		case r := <-answer:
			if r.Status != wire.StatusMoved {
				t.Fatalf("request %d, made while the active was paused, was answered %c %s", i, r.Status, r.Message)
			}
			if name := string(r.Node); name != "" && name != next.name {
				t.Fatalf("request %d was sent on to %q, active is %s", i, name, next.name)
			}
		case <-c.gone:
			t.Fatalf("request %d was not answered", i)
		case <-time.After(patience):
			t.Fatalf("request %d was not answered in time", i)
		}
	}
	s.settled(next)
	l.finish()
}
