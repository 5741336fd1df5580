//go:build linux

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/wire"
)

// C-49: the third node is ahead of the second when the active dies. The second takes over, and has all of it: it
// fetches what it lacks first.
func TestSuccessorFetchesWhatItLacks(t *testing.T) {
	const locks = 50
	p := newProxied(t, 3)
	p.start()
	one, two, three := p.nodes[0], p.nodes[1], p.nodes[2]
	c := one.must()
	p.level(one)
	p.hold(0, 1, true)
	tokens := map[string]uint64{}
	for i := range locks {
		key := fmt.Sprint("late/", i)
		tokens[key] = one.done(c, try(key, longHold), wire.StatusGranted).Token
	}
	want := one.state()
	three.awaitState("the active's position", func(is state) bool { return is.Seq >= want.Seq })
	if is := two.state(); is.Held != 0 {
		t.Fatalf("n2 has %d locks, although nothing reaches it: the test shows nothing", is.Held)
	}
	p.cut(0, 1, true)
	one.kill()
	two.awaitRole("active")
	c = two.must()
	for key, token := range tokens {
		two.done(c, extend(key, token, longHold), wire.StatusExtended)
	}
	p.settled(two)
}

// Links are slow and pieces of messages come at any time; a crash of the active is survived all the same.
func TestCrashOverSlowLinks(t *testing.T) {
	p := newProxied(t, 3, "HOLDFAST_REPLICATION=ack")
	p.start()
	p.jitter(20 * time.Millisecond)
	l := startLoad(t, p.set, time.Minute)
	l.kill(p.nodes[0])
	p.settled(p.nodes[1])
	l.finish()
}

// C-48: the link between the active and its successor comes and goes, and the third node hears both. Nobody takes over,
// nothing is lost, no client fails.
func TestFlappingLink(t *testing.T) {
	p := newProxied(t, 3)
	p.start()
	one, two := p.nodes[0], p.nodes[1]
	l := startLoad(t, p.set, time.Minute)
	for range 3 {
		downs, ups := two.life.mark(), two.life.mark()
		p.cut(0, 1, true)
		two.awaitPeer(one, "peer down", downs)
		l.more(t, 100)
		p.cut(0, 1, false)
		two.awaitPeer(one, "peer up", ups)
	}
	p.settled(one)
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

// An address of the list leads back to the node itself: it says so.
func TestListLeadsBack(t *testing.T) {
	s := newSet(t, 2)
	n := s.nodes[0]
	back := newProxy(t, loopback(clusters.Add(1), 0)+":"+httpPort, n.host+":"+httpPort)
	n.setting("HOLDFAST_PEERS", fmt.Sprintf("n1=%s,n2=http://%s", n.url(), back.addr))
	n.start()
	n.life.awaitLine(t, "that the list leads back to it", 0, func(l line) bool {
		return strings.Contains(l.Detail, "leads back to node") || strings.Contains(l.Err, `correct the address of "n2"`)
	})
}
