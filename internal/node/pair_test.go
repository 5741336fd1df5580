package node_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/internal/replica"
)

// cable is one node's end of the only link of a pair. What is sent goes to the
// other end in order; while the cable is held, bulk and what follows it waits.
type cable struct {
	mu    sync.Mutex
	queue []replica.Input // for the other end
	held  bool
	more  chan struct{} // one slot
	pull  chan struct{} // one slot
}

func newCable() *cable { return &cable{more: make(chan struct{}, 1), pull: make(chan struct{}, 1)} }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (c *cable) Push(a replica.Action) bool {
	switch a := a.(type) {
	case replica.Send:
		c.mu.Lock()
		c.queue = append(c.queue, replica.Received{Link: 1, Data: replica.AppendMessage(nil, a.Msg)})
		c.mu.Unlock()
		signal(c.more)
		if a.Lane == replica.Bulk {
			signal(c.pull)
		}
	case replica.Wake:
		signal(c.pull)
	case replica.CloseLink, replica.Redial:
	default:
		return false
	}
	return true
}

// hold keeps everything back that is sent from now on, or lets it go.
func (c *cable) hold(held bool) {
	c.mu.Lock()
	c.held = held
	c.mu.Unlock()
	signal(c.more)
}

func (c *cable) take() []replica.Input {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		return nil
	}
	all := c.queue
	c.queue = nil
	return all
}

// carry serves one end until ctx ends.
func (c *cable) carry(ctx context.Context, from, to *node.Node) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.pull:
			from.Step(replica.Pull{Link: 1, Max: 1 << 16})
		case <-c.more:
			for _, in := range c.take() {
				to.Step(in)
			}
		}
	}
}

// pair starts two linked nodes and waits until n1 is active and n2 in step.
func pair(t *testing.T, change func(*replica.Config)) (nodes [2]*node.Node, cables [2]*cable) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	for i := range nodes {
		m := replica.DefaultConfig()
		m.Names, m.Rank = []string{"n1", "n2"}, replica.Rank(i)
		m.TakeBackDelay = time.Hour
		if change != nil {
			change(&m)
		}
		n, err := node.New(node.Config{
			Name: m.Names[i], Version: "v0.1.0", Native: fmt.Sprintf("10.0.0.%d:7620", i+1), HTTP: []string{fmt.Sprintf("http://10.0.0.%d:7621", i+1)},
			Table: locks.DefaultConfig(), Cluster: &node.Cluster{Machine: m},
		})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i], cables[i] = n, newCable()
		n.Connect(cables[i])
	}
	for i, n := range nodes {
		running.Go(func() { n.Run(ctx) })
		running.Go(func() { cables[i].carry(ctx, n, nodes[1-i]) })
	}
	for _, c := range cables { // no end hears anything before its own link is up
		c.hold(true)
	}
	for i, n := range nodes {
		n.Step(replica.LinkUp{Link: 1, Dialled: i == 1})
	}
	for _, c := range cables {
		c.hold(false)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	if !nodes[0].Active().Here || !nodes[1].Status().Synced {
		t.Fatalf("n1 is %v, n2 %v", nodes[0].Status().Role, nodes[1].Status().Role)
	}
	return nodes, cables
}

func ticketed(key string, ref uint64, name byte) locks.Command {
	c := acquire(key, ref, time.Hour)
	c.Ticket = locks.Ticket{name, 1}
	return c
}

func TestHandoffMovesThoseWhoWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes, _ := pair(t, nil)
		var x, y, z box
		sx, sy := nodes[0].Open(locks.Origin{}, &x), nodes[0].Open(locks.Origin{}, &y)
		defer sx.Close()
		defer sy.Close()
		sx.Do([]locks.Command{ticketed("k", 1, 'x')})
		token := x.token(t)
		sy.Do([]locks.Command{ticketed("k", 2, 'y')})
		x.take()
		want(t, &y, "2 queued k")
		if got := nodes[0].Handoff(""); got != node.HandoffBegun {
			t.Fatalf("hand-off: %d", got)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		want(t, &x, "0 moved ")
		want(t, &y, "2 moved k", "0 moved ")
		sx.Do([]locks.Command{{Op: locks.OpRelease, Ref: 3, Key: []byte("k"), Token: token}})
		want(t, &x, "3 moved k")
		if a := nodes[0].Active(); a.Name != "n2" || a.Native != "10.0.0.2:7620" || len(a.HTTP) != 1 || a.Here {
			t.Errorf("n1 sends clients to %+v", a)
		}

		// At the new active the lock stands, and the place in line.
		sz := nodes[1].Open(locks.Origin{}, &z)
		defer sz.Close()
		again := ticketed("k", 4, 'y')
		again.Flags = locks.Retry
		sz.Do([]locks.Command{again})
		want(t, &z, "4 queued k")
		sz.Do([]locks.Command{{Op: locks.OpRelease, Ref: 5, Key: []byte("k"), Token: token}})
		want(t, &z, "5 released k", "4 granted k")
	})
}

// While the active waits for its successor to be in step, requests wait with
// their callers, a close among them, and are done in their order when it fails.
func TestRequestsWaitThroughAFreeze(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes, cables := pair(t, nil)
		var x, y box
		sx, sy := nodes[0].Open(locks.Origin{}, &x), nodes[0].Open(locks.Origin{}, &y)
		sx.Do([]locks.Command{acquire("k", 1, time.Hour)})
		x.take()
		cables[0].hold(true) // Prepare does not get through
		if got := nodes[0].Handoff(""); got != node.HandoffBegun {
			t.Fatalf("hand-off: %d", got)
		}
		begin := time.Now()
		var done [2]time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			sy.Do([]locks.Command{acquire("k", 2, time.Hour)})
			done[0] = time.Since(begin)
			sy.Close()
			done[1] = time.Since(begin)
		})
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		want(t, &y)
		wg.Wait()
		want(t, &y, "2 queued k")
		if done[0] < 400*time.Millisecond || done[1] > 600*time.Millisecond {
			t.Errorf("the acquire was done after %v, the close after %v; the freeze is half a second", done[0], done[1])
		}
		if st := nodes[0].Status().Stats; st.Waiters != 0 || st.Held != 1 {
			t.Errorf("left over: %+v", st)
		}
		cables[0].hold(false)
		sx.Close()
	})
}

// A session that closes behind a release that is parked is granted the key when
// the freeze ends, with nobody to hear of it: the key goes on at once.
func TestGrantToAClosingSessionGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes, cables := pair(t, nil)
		var x, y, z box
		sx, sy, sz := nodes[0].Open(locks.Origin{}, &x), nodes[0].Open(locks.Origin{}, &y), nodes[0].Open(locks.Origin{}, &z)
		defer sx.Close()
		defer sz.Close()
		sx.Do([]locks.Command{acquire("k", 1, time.Hour)})
		token := x.token(t)
		sy.Do([]locks.Command{acquire("k", 2, time.Hour)})
		sz.Do([]locks.Command{acquire("k", 3, time.Hour)})
		x.take()
		z.take()
		cables[0].hold(true)
		nodes[0].Handoff("")
		var wg sync.WaitGroup
		wg.Go(func() { sx.Do([]locks.Command{{Op: locks.OpRelease, Ref: 4, Key: []byte("k"), Token: token}}) })
		synctest.Wait()
		wg.Go(sy.Close)
		synctest.Wait()
		want(t, &x)
		wg.Wait() // the freeze is over: Prepare did not get through
		want(t, &x, "4 released k")
		want(t, &z, "3 granted k")
		cables[0].hold(false)
	})
}

func TestAckHoldsReplies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes, cables := pair(t, func(m *replica.Config) { m.Ack = true })
		var x, y box
		sx, sy := nodes[0].Open(locks.Origin{}, &x), nodes[0].Open(locks.Origin{}, &y)
		defer sy.Close()
		cables[0].hold(true)
		sx.Do([]locks.Command{acquire("k", 1, time.Hour), acquire("other", 2, time.Hour)})
		sy.Do([]locks.Command{acquire("k", 3, time.Hour)})
		want(t, &x)
		want(t, &y)
		time.Sleep(200 * time.Millisecond)
		cables[0].hold(false)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		want(t, &x, "1 granted k", "2 granted other")
		want(t, &y, "3 queued k")

		// A grant whose client is gone before it could be told goes on.
		cables[0].hold(true)
		sx.Do([]locks.Command{acquire("third", 4, time.Hour)})
		sx.Close()
		cables[0].hold(false)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		want(t, &x)
		sy.Do([]locks.Command{acquire("third", 5, time.Hour)})
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		want(t, &y, "5 granted third")
	})
}

// With its last standby gone an active with ack goes on alone.
func TestAckGoesOnAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes, cables := pair(t, func(m *replica.Config) { m.Ack = true })
		var x box
		sx := nodes[0].Open(locks.Origin{}, &x)
		defer sx.Close()
		cables[0].hold(true)
		cables[1].hold(true)
		sx.Do([]locks.Command{acquire("k", 1, time.Hour)})
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		want(t, &x)
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, &x, "1 granted k")
	})
}

func TestLeaveTellsEverybody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes, _ := pair(t, nil)
		var x box
		sx := nodes[0].Open(locks.Origin{}, &x)
		defer sx.Close()
		if err := nodes[0].Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, &x, "0 moved ")
		sx.Do([]locks.Command{acquire("k", 1, 0)})
		want(t, &x, "1 moved k")
		if !nodes[1].Active().Here || !nodes[0].Exited() {
			t.Error("n2 is not active, or n1 has not left")
		}

		// The last one has nobody to send its clients to.
		var y box
		sy := nodes[1].Open(locks.Origin{}, &y)
		defer sy.Close()
		if err := nodes[1].Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		sy.Do([]locks.Command{acquire("k", 2, 0)})
		want(t, &y, "0 moved ", "2 moved k")
		if a := nodes[1].Active(); a.Name != "" {
			t.Errorf("it still names %+v", a)
		}
	})
}
