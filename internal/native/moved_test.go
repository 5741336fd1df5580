package native

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/wire"
)

// standIn is a node that need not be the active, as far as the server can
// tell: the real one serves, and the test pushes what a standby says.
type standIn struct {
	*fixture
	active atomic.Pointer[node.ActiveNode]
}

var (
	here      = node.ActiveNode{Name: "n1", Native: "127.0.0.1:7620", Here: true}
	n2        = node.ActiveNode{Name: "n2", Native: "10.0.0.2:7620"}
	n3        = node.ActiveNode{Name: "n3", Native: "10.0.0.3:7620"}
	noneKnown node.ActiveNode
)

func newStandIn(t *testing.T, change ...func(*node.Config, *Config)) *standIn {
	s := &standIn{fixture: start(t, inMemory, change...)}
	s.become(here)
	s.srv.active = func() node.ActiveNode { return *s.active.Load() } // nobody is connected yet
	return s
}

func (s *standIn) become(a node.ActiveNode) { s.active.Store(&a) }

// conn is the server's side of the only connection, or of the one that has
// acquires waiting.
func (s *standIn) conn() (found *conn) {
	synctest.Wait()
	s.eachConn(func(c *conn) {
		if found == nil || c.pending != nil {
			found = c
		}
	})
	return found
}

// moves answers every queued acquire of c "moved", the last one first, and
// pushes it, as a node does that stops being the active.
func moves(c *conn, key string) {
	c.mu.Lock()
	refs := c.pending.all()
	c.mu.Unlock()
	for i := range refs {
		c.Push(&locks.Reply{Op: locks.OpAcquire, Code: locks.Moved, Ref: uint64(refs[len(refs)-1-i]), Key: []byte(key)})
	}
	c.Push(&locks.Reply{Code: locks.Moved})
	c.Flush()
}

// A request to a node that does not serve is answered with the active's
// address and name, never with the node's own.
func TestMovedNamesTheActive(t *testing.T) {
	for name, c := range map[string]struct {
		active    node.ActiveNode
		addr, who string
	}{
		"known":    {n2, "10.0.0.2:7620", "n2"},
		"none":     {noneKnown, "", ""}, // C-54
		"here now": {here, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newStandIn(t)
				a := s.greet("a")
				s.become(c.active)
				conn := s.conn()
				for _, op := range []locks.Op{locks.OpAcquire, locks.OpRelease, locks.OpExtend} {
					conn.Push(&locks.Reply{Op: op, Code: locks.Moved, Ref: 7, Key: []byte("k")})
				}
				conn.Push(&locks.Reply{Code: locks.Moved})
				conn.Push(&locks.Reply{Op: locks.OpUndelivered, Code: locks.Moved, Key: []byte("k")}) // which no client asked for
				conn.Flush()
				synctest.Wait()
				replies := a.take()
				if got, want := outcomes(replies), "acquire moved, release moved, extend moved, moved node moved"; got != want {
					t.Errorf("read %q, want %q", got, want)
				}
				for i, r := range replies {
					if string(r.Addr) != c.addr || string(r.Node) != c.who {
						t.Errorf("reply %d names %q at %q", i, r.Node, r.Addr)
					}
					if id := r.ID; i < 3 && id != 7 || i == 3 && id != 0 {
						t.Errorf("reply %d has id %d", i, id)
					}
				}
			})
		})
	}
}

// A cancel that meets the end of the reign finds nothing; what it meant is
// answered "moved".
func TestMovedMeetsCancel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStandIn(t)
		s.greet("holder").send(acquireOf(1, "k"))
		synctest.Wait()
		a := s.greet("a")
		a.send(acquireOf(5, "k"))
		c := s.conn()
		target, ok := c.beginCancel(&wire.Request{Op: wire.OpCancel, ID: 6, Target: 5})
		if !ok {
			t.Fatal("nothing is pending")
		}
		s.become(n2)
		c.Push(&locks.Reply{Op: locks.OpAcquire, Code: locks.Moved, Ref: uint64(target), Key: []byte("k")})
		c.Push(&locks.Reply{Op: locks.OpCancel, Code: locks.Moved, Ref: uint64(target)})
		c.Flush()
		a.send(wire.Request{Op: wire.OpCancel, ID: 8, Target: 5}) // by now there is nothing to ask the node for
		synctest.Wait()
		replies := a.take()
		if got, want := outcomes(replies), "acquire moved, cancel nothing pending, cancel nothing pending"; got != want || replies[1].ID != 6 || replies[2].ID != 8 {
			t.Errorf("read %q, want %q: %v", got, want, replies)
		}
	})
}

// In ordered mode "moved" keeps its place in its line, and names who is the
// active when it goes out.
func TestMovedInOrderedMode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStandIn(t)
		s.greet("holder").send(acquireOf(1, "k"))
		synctest.Wait()
		a := s.greet("a")
		a.send(acquireOf(0, "k"), acquireOf(0, "k"), tryOf(0, "k"))
		c := s.conn()
		c.mu.Lock()
		refs := c.pending.all()
		c.mu.Unlock()
		if len(refs) != 2 {
			t.Fatalf("%d are queued", len(refs))
		}
		s.become(n2)
		c.Push(&locks.Reply{Op: locks.OpAcquire, Code: locks.Moved, Ref: uint64(refs[1]), Key: []byte("k")})
		c.Flush()
		synctest.Wait()
		if got := a.take(); len(got) != 0 {
			t.Errorf("out of turn: %v", got)
		}
		s.become(n3)
		c.Push(&locks.Reply{Op: locks.OpAcquire, Code: locks.Moved, Ref: uint64(refs[0]), Key: []byte("k")})
		c.Flush()
		synctest.Wait()
		replies := a.take()
		if got, want := outcomes(replies), "acquire moved, acquire moved, acquire not granted"; got != want {
			t.Fatalf("read %q, want %q", got, want)
		}
		for _, r := range replies[:2] {
			if string(r.Addr) != n3.Native || string(r.Node) != n3.Name {
				t.Errorf("names %q at %q", r.Node, r.Addr)
			}
		}
	})
}

// However many acquires of one connection are told at once that the node
// moved, the client is not cut off for not having read that yet; the push is
// not dropped behind them, and the connection goes on.
func TestMovedQueueIsNotCut(t *testing.T) {
	const waiting = 20_000
	for name, id := range map[string]uint32{"numbered": 1, "ordered": 0} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newStandIn(t, func(n *node.Config, c *Config) {
					n.Table.MaxPending, n.Table.MaxWaitersPerKey = waiting, waiting
					c.MaxPending, c.OutputLimit = waiting, 2000
				})
				s.greet("holder").send(acquireOf(1, "k"))
				synctest.Wait()
				a, listen := s.deaf("a")
				for i := range uint32(waiting) {
					a.send(acquireOf(id*(i+1), "k"))
				}
				s.become(n2)
				moves(s.conn(), "k")
				a.send(wire.Request{Op: wire.OpPing, ID: 1}) // whereupon the server looks at the output
				synctest.Wait()
				listen()
				synctest.Wait()
				checkMoved(t, a.take(), waiting)
				s.become(here)
				a.send(acquireOf(3, "another"))
				synctest.Wait()
				if got := outcomes(a.take()); got != "acquire granted" {
					t.Errorf("read %q after the node took over again", got)
				}
			})
		})
	}
}

// checkMoved expects the welcome, so many acquires answered "moved" to n2, the
// push and a pong; the last two go out before acquires of ordered mode, which
// wait for the socket.
func checkMoved(t *testing.T, replies []wire.Reply, acquires int) {
	t.Helper()
	var moved, pushed, pongs int
	for _, r := range replies {
		switch {
		case r.Op == wire.OpPing:
			pongs++
		case r.Op == wire.OpHello:
		case string(r.Addr) != n2.Native || string(r.Node) != n2.Name:
			t.Fatalf("names %q at %q: %v", r.Node, r.Addr, r)
		case r.Op == wire.OpMoved:
			pushed++
		case r.Op == wire.OpAcquire && r.Status == wire.StatusMoved:
			moved++
		default:
			t.Fatalf("read %v", r)
		}
	}
	if moved != acquires || pushed != 1 || pongs != 1 {
		t.Errorf("%d acquires moved, %d pushes, %d pongs", moved, pushed, pongs)
	}
}

// A node that stops after it handed over says who has taken over.
func TestShutdownNamesTheSuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStandIn(t)
		s.greet("holder").send(acquireOf(1, "k"))
		synctest.Wait()
		a := s.greet("a")
		a.send(acquireOf(2, "k"), acquireOf(0, "k"))
		synctest.Wait()
		s.become(n2)
		if err := s.srv.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		replies, _ := a.ended()
		if got, want := outcomes(replies), "acquire moved, acquire moved, moved node moved"; got != want {
			t.Fatalf("read %q, want %q", got, want)
		}
		for _, r := range replies {
			if string(r.Addr) != n2.Native || string(r.Node) != n2.Name {
				t.Errorf("names %q at %q", r.Node, r.Addr)
			}
		}
	})
}

// The welcome of a standby names the active at once, so that a client need not
// ask in vain.
func TestHelloOfAStandby(t *testing.T) {
	for _, active := range []node.ActiveNode{n2, noneKnown} {
		inBubble(t, func(t *testing.T) {
			s := newStandIn(t)
			s.become(active)
			a := s.connect("a")
			a.send(wire.Request{Op: wire.OpHello, Version: wire.Version})
			r := a.next()
			if r.Role != wire.RoleStandby || string(r.Addr) != active.Native || string(r.ActiveNode) != active.Name || string(r.Node) != "n1" {
				t.Errorf("welcome %v, want the active %q at %q", r, active.Name, active.Native)
			}
		})
	}
}

// The node stops being the active between the welcome and the session.
func TestMovedRacesHello(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStandIn(t)
		asked := 0
		s.srv.active = func() node.ActiveNode {
			if asked++; asked == 1 {
				return here
			}
			return n2
		}
		a := s.greet("a")
		synctest.Wait()
		replies := a.take()
		if got := outcomes(replies); got != "moved node moved" || string(replies[0].Addr) != n2.Native {
			t.Errorf("read %q after the welcome: %v", got, replies)
		}
	})
}
