//go:build linux

package cluster

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"holdfast/wire"
)

// C-62: what is left of a lease is left of it after a crash: the key is free when it is over, and not before.
func TestLeaseGoesOnThroughAFailover(t *testing.T) {
	const (
		lease = 3 * time.Second // more than the time after a promotion in which nothing expires
		late  = 2 * time.Second // for the gap, and a busy machine
	)
	s := startSet(t, 3)
	one, two := s.nodes[0], s.nodes[1]
	before := time.Now()
	one.done(one.must(), try("job", lease), wire.StatusGranted)
	after := time.Now()
	s.level(one)
	one.kill()
	two.awaitRole("active")
	two.done(two.must(), acquire("job", lease), wire.StatusGranted)
	if held := time.Since(before); held < lease {
		t.Errorf("the key was given away after %v of a lease of %v", held, lease)
	}
	if held := time.Since(after); held > lease+late {
		t.Errorf("the key was free only after %v, with a lease of %v", held, lease)
	}
}

// C-69: after a failover a client's old hold still stands. The same ticket is answered with it; another one has to wait.
func TestOwnHoldAfterAFailover(t *testing.T) {
	s := startSet(t, 3)
	one, two := s.nodes[0], s.nodes[1]
	r := acquire("job", longHold)
	rand.Read(r.Ticket[:])
	token := one.done(one.must(), r, wire.StatusGranted).Token
	s.level(one)
	one.kill()
	two.awaitRole("active")
	c := two.must()
	two.done(c, try("job", longHold), wire.StatusNotGranted)
	r.Flags = wire.FlagRetry
	if again := two.done(c, r, wire.StatusGranted); again.Token != token {
		t.Errorf("the ticket was answered with token %d, its hold has %d", again.Token, token)
	}
	two.done(c, release("job", token), wire.StatusReleased)
	if fresh := two.done(c, try("job", longHold), wire.StatusGranted); fresh.Token <= token {
		t.Errorf("token %d after %d", fresh.Token, token)
	}
}

// C-68: every node is killed and starts with empty hands. Locks are gone, but tokens still rise.
func TestTokensRiseWhenAllRestart(t *testing.T) {
	s := startSet(t, 3)
	var highest uint64
	for life := range 3 {
		c := s.nodes[0].must()
		for i := range 50 {
			token := s.nodes[0].done(c, try(fmt.Sprint("key/", i), longHold), wire.StatusGranted).Token
			if token <= highest {
				t.Fatalf("life %d, grant %d: token %d after %d", life, i, token, highest)
			}
			highest = token
		}
		for _, n := range s.nodes {
			n.kill()
		}
		s.start()
	}
}

// C-54: a node that knows no active says so at once, on both ports, and names nobody.
func TestNoActiveIsKnown(t *testing.T) {
	s := newSet(t, 2, "HOLDFAST_START_GRACE=10m")
	n := s.nodes[0]
	n.start()
	n.life.awaitLine(t, "its start", 0, func(l line) bool { return l.Msg == "started" })
	c := n.must()
	if r := n.done(c, acquire("job", 0), wire.StatusMoved); len(r.Addr) > 0 || len(r.Node) > 0 {
		t.Errorf("sent on to %q at %q", r.Node, r.Addr)
	}
	if c.welcome.Role != wire.RoleJoining || len(c.welcome.Addr) > 0 {
		t.Errorf("the welcome has role %c and active %q", c.welcome.Role, c.welcome.Addr)
	}
	r, err := s.http.Post(n.url()+"/v1/acquire?key=job", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("HTTP: %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	}
}

// C-66: a standby hangs for longer than the suspicion time while clients work, and catches up when it goes on. The
// active does not wait for it, and its peers don't take the others' silence, which is its own, for their end.
func TestPauseAStandby(t *testing.T) {
	s := startSet(t, 3)
	one, two := s.nodes[0], s.nodes[1]
	l := startLoad(t, s, time.Minute)
	mark := one.life.mark()
	two.pause()
	one.awaitPeer(two, "peer down", mark)
	l.more(t, 500)
	two.resume()
	l.more(t, 100)
	s.settled(one)
	l.finish()
	for _, n := range s.nodes {
		for _, change := range n.life.since(0, isRole) {
			if change.Role == "active" && n != one {
				t.Errorf("%s became active beside n1: %s", n.name, change.text)
			}
		}
	}
}
