//go:build linux

package cluster

import (
	"testing"
	"time"
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
