//go:build linux

package cluster

import (
	"context"
	"sync"
	"testing"
	"time"

	"holdfast/internal/replica"
	"holdfast/internal/replica/link"
)

// impostor is a peer that knows the secret and is played by the test: it greets, keeps its link alive by echoes, and
// says for the rest what the test has it say.
type impostor struct {
	t    *testing.T
	to   *node
	rank replica.Rank
	tr   *link.Transport
	says replica.Heartbeat // of itself, but for nonce and echo

	mu             sync.Mutex // guards what follows
	link           replica.LinkID
	nonce          uint64
	theirs, echoed uint64
	major, minor   uint16        // of the node
	lost           int           // links that ended
	heard          chan struct{} // closed, and made anew, whenever something came
}

// newImpostor takes the place of the last node of the set, which must not run, on links to one other.
func newImpostor(t *testing.T, s *set, to *node, says replica.Heartbeat) *impostor {
	t.Helper()
	rank := replica.Rank(len(s.nodes) - 1)
	x := &impostor{t: t, to: to, rank: rank, says: says, heard: make(chan struct{})}
	var peers []link.Peer
	for _, n := range s.nodes {
		url := n.url()
		if n != to {
			url = "http://" + n.host + ":1" // nobody listens there
		}
		peers = append(peers, link.Peer{Name: n.name, URL: url})
	}
	tr, err := link.New(link.Config{Rank: rank, Peers: peers, Secrets: func() []string { return []string{secret} }, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	x.tr = tr
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tr.Run(ctx, x)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	x.await("a link", func() bool { return x.theirs > 0 })
	return x
}

// Step is link.Owner's.
func (x *impostor) Step(in replica.Input) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch in := in.(type) {
	case replica.LinkUp:
		x.link, x.theirs, x.echoed = in.Link, 0, 0
	case replica.LinkDown:
		if in.Link == x.link {
			x.link = 0
			x.lost++
		}
	case replica.Received:
		if m, err := replica.DecodeMessage(in.Data); err == nil && in.Link == x.link {
			x.hearLocked(m)
		}
	}
	close(x.heard)
	x.heard = make(chan struct{})
}

func (x *impostor) helloLocked() *replica.Hello {
	var names []string
	for _, n := range x.to.set.nodes {
		names = append(names, n.name)
	}
	return &replica.Hello{Name: names[x.rank], Rank: x.rank, Incarnation: 4711, Major: x.major, Minor: x.minor, Names: names, Wall: time.Now().UnixMilli()}
}

func (x *impostor) hearLocked(m replica.Message) {
	switch m := m.(type) {
	case *replica.Hello:
		x.major, x.minor = m.Major, m.Minor
		x.sayLocked(x.helloLocked())
	case *replica.Heartbeat:
		x.theirs, x.echoed = m.Nonce, m.Echo
		x.beatLocked(false)
	}
}

func (x *impostor) beatLocked(ask bool) {
	h := x.says
	x.nonce++
	h.Nonce, h.Echo, h.Ask = x.nonce, x.theirs, ask
	x.sayLocked(&h)
}

func (x *impostor) sayLocked(m replica.Message) {
	if x.link != 0 {
		x.tr.Push(replica.Send{Link: x.link, Lane: replica.Control, Msg: m})
	}
}

// say sends messages and returns when the node has taken them in, or has given the link up.
func (x *impostor) say(ms ...replica.Message) {
	x.t.Helper()
	x.await("a link", func() bool { return x.link != 0 && x.theirs > 0 })
	x.mu.Lock()
	lost := x.lost
	for _, m := range ms {
		x.sayLocked(m)
	}
	x.beatLocked(true)
	upto := x.nonce
	x.mu.Unlock()
	x.await("an answer", func() bool { return x.lost > lost || x.echoed >= upto })
}

func (x *impostor) await(what string, ok func() bool) {
	x.t.Helper()
	late := time.After(patience)
	for {
		x.mu.Lock()
		done, heard := ok(), x.heard
		x.mu.Unlock()
		if done {
			return
		}
		select {
		case <-heard:
		case <-x.to.life.ended:
			x.t.Fatalf("waiting for %s: %s has ended:\n%.4000s", what, x.to.name, x.to.life.text())
		case <-late:
			x.t.Fatalf("waited in vain for %s from %s", what, x.to.name)
		}
	}
}
