//go:build linux

package cluster

import (
	"testing"
	"time"
)

// One pair of three is cut, in silence. The third node hears both: the one that loses the active does not take over.
func TestBrokenPair(t *testing.T) {
	w := newNetwork(t, 3)
	w.start()
	one, two := w.nodes[0], w.nodes[1]
	l := startLoad(t, w.set, time.Minute)
	mark := two.life.mark()
	w.deafen(0, 1)
	w.deafen(1, 0)
	two.awaitPeer(one, "peer down", mark)
	one.awaitPeer(two, "peer down", 0)
	l.more(t, 300)
	mark = two.life.mark()
	w.heal()
	two.awaitPeer(one, "peer up", mark)
	w.settled(one)
	l.finish()
	if changes := one.life.since(0, isRole); len(changes) != 1 {
		t.Errorf("the active changed its role: %+v", changes)
	}
	for _, change := range two.life.since(0, isRole) {
		if change.Role == "active" {
			t.Errorf("n2 became active beside n1: %s", change.text)
		}
	}
}

// C-59: the active that was cut off is restarted meanwhile and knows nothing any more. It takes over again in the end,
// by its rank, and with all that the others hold.
func TestPartitionAndRestart(t *testing.T) {
	w := newNetwork(t, 3, quick)
	w.start()
	one, two := w.nodes[0], w.nodes[1]
	l := startLoad(t, w.set, shortLease)
	from := l.now()
	w.deafen(0, 1, 2)
	w.deafen(1, 0)
	w.deafen(2, 0)
	two.awaitRole("active")
	one.kill()
	one.start()
	one.awaitRole("active")
	l.more(t, 100)
	w.heal()
	two.awaitRole("standby")
	w.settled(one)
	l.declare(fault{split, from - instant(time.Second), l.now()})
	l.finish()
}
