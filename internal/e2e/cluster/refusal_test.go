//go:build linux

package cluster

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// refused waits until the node's log tells of a refusal with all of these texts.
func (n *node) refused(texts ...string) {
	n.t.Helper()
	n.life.awaitLine(n.t, fmt.Sprintf("%s: a refusal with %q", n.name, texts), 0, func(l line) bool {
		for _, text := range texts {
			if !strings.Contains(l.Detail+l.Err+l.Answer, text) {
				return false
			}
		}
		return true
	})
}

// undisturbed fails if any of the nodes changed its role since the marks.
func undisturbed(t *testing.T, nodes []*node, marks []int) {
	t.Helper()
	for i, n := range nodes {
		if !n.running() {
			t.Errorf("%s has ended", n.name)
		}
		for _, change := range n.life.since(marks[i], isRole) {
			t.Errorf("%s changed its role: %s", n.name, change.text)
		}
	}
}

func marksOf(nodes []*node) (marks []int) {
	for _, n := range nodes {
		marks = append(marks, n.life.mark())
	}
	return marks
}

// C-42: a node has the others in another order. Both sides say so, one node serves at the most, and roles don't move.
func TestListsInAnotherOrder(t *testing.T) {
	s := newSet(t, 3, "HOLDFAST_SUSPICION=400ms", "HOLDFAST_START_GRACE=600ms")
	one, two, three := s.nodes[0], s.nodes[1], s.nodes[2]
	one.setting("HOLDFAST_PEERS", fmt.Sprintf("n1=%s,n3=%s,n2=%s", one.url(), three.url(), two.url()))
	for _, n := range s.nodes {
		n.start()
	}
	for _, n := range s.nodes {
		n.refused(`" has rank `, "make the lists alike")
	}
	two.awaitRole("active") // it and n3 agree
	three.awaitRole("standby")
	one.life.awaitLine(t, "that it is kept from serving", 0, func(l line) bool { return l.Event == "barred" })
	if got := one.state().Role; got != "joining" {
		t.Errorf("n1, which two refuse, is %s", got)
	}
	marks := marksOf(s.nodes)
	two.kill()
	three.life.awaitLine(t, "that it is kept from serving", 0, func(l line) bool { return l.Event == "barred" })
	undisturbed(t, []*node{one, three}, []int{marks[0], marks[2]})
}

// C-43: a copy of a node, on another address, ends and says why; the cluster does not notice.
func TestCopyOfANode(t *testing.T) {
	s := startSet(t, 3)
	marks := marksOf(s.nodes)
	l := startLoad(t, s, time.Minute)
	copied := &node{t: t, set: s, name: "n2", host: loopback(clusters.Add(1), 0), begin: s.nodes[1].begin, env: s.nodes[1].env}
	copied.setting("HOLDFAST_NATIVE_ADDR", copied.native())
	copied.setting("HOLDFAST_HTTP_ADDR", copied.host+":"+httpPort)
	copied.start()
	if code := copied.life.exit(t); code == 0 || code == -1 {
		t.Errorf("the copy ended with %d:\n%s", code, copied.life.text())
	}
	if log := copied.life.text(); !strings.Contains(log, `another process`) && !strings.Contains(log, `duplicate`) || !strings.Contains(log, `n2`) {
		t.Errorf("the copy did not say why it ended:\n%s", log)
	}
	l.finish()
	undisturbed(t, s.nodes, marks)
}

// A node with another secret is told so, on both sides, and does not join; no secret shows anywhere.
func TestWrongSecret(t *testing.T) {
	s := newSet(t, 3, "HOLDFAST_SUSPICION=400ms", "HOLDFAST_START_GRACE=600ms")
	s.nodes[2].setting("HOLDFAST_CLUSTER_SECRET", "another-secret-for-tests")
	for _, n := range s.nodes {
		n.start()
	}
	s.nodes[0].awaitRole("active")
	s.nodes[1].awaitRole("standby")
	for _, n := range s.nodes {
		n.refused("does not fit this node's cluster secret")
	}
	for _, n := range s.nodes {
		if strings.Contains(n.life.text(), secret) || strings.Contains(n.life.text(), "another-secret") {
			t.Errorf("%s logs a secret:\n%s", n.name, n.life.text())
		}
	}
}

func TestNoSecret(t *testing.T) {
	s := newSet(t, 2)
	n := s.nodes[0]
	n.setting("HOLDFAST_CLUSTER_SECRET", "")
	n.start()
	if code := n.life.exit(t); code == 0 || code == -1 || !strings.Contains(n.life.text(), "HOLDFAST_CLUSTER_SECRET") {
		t.Errorf("exit code %d, log:\n%s", code, n.life.text())
	}
}

// Whoever has no proof is turned away before anything is set up, and a flood of garbage changes nothing.
func TestGarbageOnThePeersEndpoint(t *testing.T) {
	s := startSet(t, 3)
	marks := marksOf(s.nodes)
	l := startLoad(t, s, time.Minute)
	upgrade := "GET /internal/v1/replica HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	proof := func(b []byte) string { return "Holdfast-Peer: " + base64.RawURLEncoding.EncodeToString(b) + "\r\n" }
	for name, c := range map[string]struct {
		sent string
		want int
	}{
		"no proof":           {upgrade + "\r\n", 401},
		"no upgrade":         {"GET /internal/v1/replica HTTP/1.1\r\nHost: x\r\n\r\n", 401},
		"POST":               {"POST /internal/v1/replica HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 401},
		"no base64":          {upgrade + "Holdfast-Peer: !!!\r\n\r\n", 401},
		"empty":              {upgrade + "Holdfast-Peer:\r\n\r\n", 401},
		"two proofs":         {upgrade + proof([]byte{1}) + proof([]byte{1}) + "\r\n", 401},
		"another version":    {upgrade + proof(append([]byte{2}, make([]byte, 100)...)) + "\r\n", 401},
		"cut off":            {upgrade + proof(make([]byte, 3)) + "\r\n", 401},
		"long":               {upgrade + proof(make([]byte, 4000)) + "\r\n", 401},
		"zeros":              {upgrade + proof(append([]byte{1}, make([]byte, 77)...)) + "\r\n", 401},
		"wrong mac":          {upgrade + proof(guess()) + "\r\n", 401},
		"frames at once":     {upgrade + "\r\n" + strings.Repeat("\x82\xfe\xff\xff\x00\x00\x00\x00", 1000), 401},
		"not HTTP at all":    {"\x00\x01\x02\x03\r\n\r\n", 400},
		"native, wrong port": {"\x00\x00\x00\x10H\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\r\n\r\n", 400},
	} {
		for _, n := range s.nodes[:2] {
			if got := n.http(c.sent); got != c.want {
				t.Errorf("%s, %s: answered %d, want %d", name, n.name, got, c.want)
			}
		}
	}
	l.finish()
	undisturbed(t, s.nodes, marks)
}

// guess is a first proof as n3 would make it for n1, with a mac made up.
func guess() []byte {
	b := make([]byte, 1+8+32)
	b[0] = 1
	b = append(b, "\x02n3\x02n1"...)
	return append(b, make([]byte, 32)...)
}

// http sends bytes to the HTTP port and returns the status that they are answered with.
func (n *node) http(sent string) int {
	n.t.Helper()
	c, err := net.DialTimeout("tcp", n.host+":"+httpPort, patience)
	if err != nil {
		n.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	go c.Write([]byte(sent))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		n.t.Fatalf("%s: no answer to %.60q: %v", n.name, sent, err)
	}
	r.Body.Close()
	return r.StatusCode
}

// A node that every other one refuses for its secret does not serve a cluster of its own beside theirs.
func TestWrongSecretServesNobody(t *testing.T) {
	s := newSet(t, 3, "HOLDFAST_SUSPICION=400ms", "HOLDFAST_START_GRACE=600ms")
	stranger := s.nodes[2]
	stranger.setting("HOLDFAST_CLUSTER_SECRET", "another-secret-for-tests")
	for _, n := range s.nodes {
		n.start()
	}
	s.nodes[0].awaitRole("active")
	s.nodes[1].awaitRole("standby")
	decided := stranger.life.awaitLine(t, "its decision", 0, func(l line) bool { return isRole(l) || l.Event == "barred" })
	if decided.Role == "active" {
		t.Errorf("n3, which both others refuse, serves: %s", decided.text)
	}
}
