package web

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// newJoiningPort is the port of a node that has just started in a cluster of two,
// and hears nothing of the other: until its start-up grace is over it serves nobody.
func newJoiningPort(t *testing.T) *port {
	toTokenTime()
	cluster := &node.Cluster{}
	m := &cluster.Machine
	m.Names, m.Rank = []string{"n1", "n2"}, 1
	m.Heartbeat, m.Suspicion, m.StartGrace, m.LogBytes = 100*time.Millisecond, time.Second, 30*time.Second, 1<<20
	n, err := node.New(node.Config{Name: "n2", Native: "192.0.2.2:7620", Table: locks.DefaultConfig(), Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	s, err := New(Config{Node: n})
	if err != nil {
		t.Fatal(err)
	}
	p := &port{t: t, server: s, ln: newPipes(), served: make(chan error, 1)}
	go func() { p.served <- s.Serve(p.ln) }()
	return p
}

// A node that is not the active may be watched; who wants a lock there is sent
// away. The watcher stays, and sees how the node becomes the active.
func TestWebSocketAtAStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newJoiningPort(t)
		defer p.shutdown()
		watching, _ := dialSocket(t, p.pipe, nil)
		defer watching.CloseNow()
		tell(t, watching, `{"op":"watch","types":["role"]}`)
		asking, _ := dialSocket(t, p.pipe, nil)
		tell(t, asking, `{"op":"release","id":1,"key":"k","token":8}`)
		heard, err := hear(asking, "")
		if websocket.CloseStatus(err) != 4307 || !slices.Equal(heard, []string{`{"push":"moved","active":null}`}) {
			t.Errorf("heard %q, then %v", heard, err)
		}
		if heard, err := hear(watching, `"type":"role"`); err != nil {
			t.Errorf("heard %q, then %v", heard, err)
		}
		tell(t, watching, `{"op":"acquire","id":1,"key":"k"}`)
		if heard, err := hear(watching, `"status":"granted"`); err != nil {
			t.Errorf("heard %q, then %v", heard, err)
		}
	})
}
