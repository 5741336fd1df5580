package link

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"holdfast/internal/replica"
)

// cluster is real machines over real sockets of the loopback interface.
type cluster struct {
	tb      testing.TB
	members []*member
	zero    time.Time

	mu      sync.Mutex // guards what follows, and every member's machine and state
	changed *sync.Cond // after each step
	late    bool
}

// member is one node of a cluster: a machine, a state that is as small as can
// be, and the transport.
type member struct {
	c      *cluster
	rank   replica.Rank
	m      *replica.Machine
	tr     *Transport
	server *http.Server
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	// Guarded by the cluster's mutex.
	dead  bool
	state toy
	stash toy
	role  replica.Role
	why   replica.Why
	took  time.Time // of the last change
	exit  string
}

// toy is a state whose every event counts, and leaves its trace in a sum.
type toy struct{ n, sum uint64 }

func (s *toy) fold(run []byte) {
	for {
		e, rest, ok := replica.NextEvent(run)
		if !ok {
			return
		}
		run = rest
		if len(e) == 17 && e[0] == 's' { // a snapshot
			s.n, s.sum = binary.BigEndian.Uint64(e[1:]), binary.BigEndian.Uint64(e[9:])
			continue
		}
		h := fnv.New64a()
		fmt.Fprint(h, s.sum, string(e))
		s.n, s.sum = s.n+1, h.Sum64()
	}
}

func (s *toy) snapshot() []byte {
	e := binary.BigEndian.AppendUint64([]byte{'s'}, s.n)
	return replica.AppendEvent(nil, binary.BigEndian.AppendUint64(e, s.sum))
}

// newCluster starts n nodes whose machines differ from the default by what configure does.
func newCluster(tb testing.TB, n int, configure func(*replica.Config)) *cluster {
	c := &cluster{tb: tb, zero: time.Now()}
	c.changed = sync.NewCond(&c.mu)
	var peers []Peer
	var listeners []net.Listener
	for i := range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		listeners = append(listeners, ln)
		peers = append(peers, Peer{Name: fmt.Sprintf("n%d", i), URL: "http://" + ln.Addr().String()})
	}
	for i := range n {
		c.members = append(c.members, c.newMember(replica.Rank(i), peers, configure))
	}
	for i, x := range c.members {
		x.start(listeners[i])
	}
	tb.Cleanup(func() {
		for _, x := range c.members {
			x.kill()
		}
	})
	return c
}

func (c *cluster) newMember(r replica.Rank, peers []Peer, configure func(*replica.Config)) *member {
	cfg := replica.DefaultConfig()
	cfg.Rank, cfg.Incarnation, cfg.WallAtZero = r, replica.Incarnation(r)+1, c.zero.UnixMilli()
	for _, p := range peers {
		cfg.Names = append(cfg.Names, p.Name)
	}
	configure(&cfg)
	m, err := replica.New(cfg, 0)
	if err != nil {
		c.tb.Fatal(err)
	}
	tr, err := New(Config{Rank: r, Peers: peers, Secrets: func() []string { return []string{secret} }, Timeout: time.Second,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.tb.Fatal(err)
	}
	return &member{c: c, rank: r, m: m, tr: tr, server: &http.Server{Handler: tr}}
}

func (x *member) start(ln net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	x.stop = cancel
	x.tasks.Go(func() { x.server.Serve(ln) })
	x.tasks.Go(func() { x.tr.Run(ctx, x) })
	x.tasks.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			x.Step(replica.Tick{})
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
}

// kill is kill -9: nobody listens any more, and the peers get a reset.
func (x *member) kill() {
	x.c.mu.Lock()
	if x.dead {
		x.c.mu.Unlock()
		return
	}
	x.dead = true
	x.c.mu.Unlock()
	x.server.Close()
	x.tr.mu.Lock()
	for _, c := range x.tr.links {
		c.raw.(*net.TCPConn).SetLinger(0)
		c.raw.Close()
	}
	x.tr.mu.Unlock()
	x.stop()
	x.tasks.Wait()
}

// Step is Owner's.
func (x *member) Step(in replica.Input) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	if !x.dead {
		x.feed(in)
	}
	x.c.changed.Broadcast()
}

func (x *member) feed(in replica.Input) {
	var act replica.Actions
	x.m.Step(replica.Time(time.Since(x.c.zero)), in, &act)
	for _, a := range act.List {
		if !x.tr.Push(a) {
			x.carryOut(a)
		}
	}
}

func (x *member) carryOut(a replica.Action) {
	switch a := a.(type) {
	case replica.BecomeActive:
		x.begin(a.Heard, a.Gap)
	case replica.NewReign:
		x.begin(a.Heard, a.Gap)
	case replica.Apply:
		x.state.fold(a.Run)
	case replica.TakeSnapshot:
		x.feed(replica.SnapshotChunk{Link: a.Link, Run: x.state.snapshot()})
	case replica.StashOffer:
		x.stash.fold(a.Run)
	case replica.AdoptOffer:
		x.state, x.stash = x.stash, toy{}
	case replica.MergeOffer:
		x.feed(replica.OfferMerged(a))
	case replica.HashState:
		x.feed(replica.StateHash{For: a.For, Hash: x.state.sum})
	case replica.RoleChanged:
		x.role, x.why, x.took = a.To, a.Why, time.Now()
	case replica.Exit:
		x.exit = a.Why
	}
}

func (x *member) begin(heard, gap replica.Token) {
	n := (uint64(heard)+uint64(gap))>>3 + 1
	epoch := replica.Epoch(n<<3 | uint64(x.rank))
	run := replica.AppendEvent(nil, fmt.Appendf(nil, "epoch %d", epoch))
	x.state.fold(run)
	x.feed(replica.Activated{Epoch: epoch, Run: run})
}

// commit puts an event of size bytes into the active's state.
func (x *member) commit(size int) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	run := replica.AppendEvent(nil, make([]byte, size))
	x.state.fold(run)
	x.feed(replica.Events{Run: run, Highest: x.m.Status().Highest})
	x.c.changed.Broadcast()
}

// await waits for something to be so after some step. It fails after a time that nothing here takes.
func (c *cluster) await(what string, so func() bool) {
	c.tb.Helper()
	guard := time.AfterFunc(30*time.Second, func() {
		c.mu.Lock()
		c.late = true
		c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer guard.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !so() {
		if c.late {
			for _, x := range c.members {
				c.tb.Logf("n%d: %v because of %v, state %+v, %+v", x.rank, x.role, x.why, x.state, x.m.Status())
			}
			c.tb.Fatalf("not %s", what)
		}
		c.changed.Wait()
	}
}

// awaitStep waits until the living are in step with the active, with one link for each pair.
func (c *cluster) awaitStep(active int) {
	c.tb.Helper()
	c.await("all in step", func() bool {
		living := 0
		for _, x := range c.members {
			if !x.dead {
				living++
			}
		}
		for i, x := range c.members {
			want := replica.Standby
			if i == active {
				want = replica.Active
			}
			if !x.dead && (x.role != want || x.state != c.members[active].state || !x.m.Status().Synced || x.links() != living-1) {
				return false
			}
		}
		return true
	})
}

func (x *member) links() int {
	x.tr.mu.Lock()
	defer x.tr.mu.Unlock()
	return len(x.tr.links)
}

// patient makes silence mean nothing, so that whatever is noticed is noticed by
// links that break and dials that are refused.
func patient(c *replica.Config) { c.Suspicion, c.StartGrace = time.Hour, 2*time.Hour }

// A cluster elects its first node, replicates, and replaces it the moment that
// its process is gone: no time-out passes, for there is none that would.
func TestTakeOver(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := newCluster(t, n, patient)
			c.awaitStep(0)
			for range 100 {
				c.members[0].commit(1000)
			}
			c.members[0].commit(1 << 20) // in pieces
			c.awaitStep(0)
			for active := range n - 1 {
				c.members[active].kill()
				c.awaitStep(active + 1)
				if x := c.members[active+1]; x.why != replica.WhyLoss {
					t.Errorf("n%d is active because of %v", active+1, x.why)
				}
				c.members[active+1].commit(10)
				c.awaitStep(active + 1)
			}
			for _, x := range c.members {
				if x.exit != "" {
					t.Errorf("n%d: exit: %s", x.rank, x.exit)
				}
			}
			if got := c.members[n-1].state.n; got != uint64(2*n-1+101) {
				t.Errorf("%d events, want %d", got, 2*n-1+101)
			}
		})
	}
}

// BenchmarkTakeOver measures from the kill of the active to the activation of
// the next, with the default settings.
func BenchmarkTakeOver(b *testing.B) {
	var sum, worst time.Duration
	for b.Loop() {
		c := newCluster(b, 3, func(*replica.Config) {})
		c.awaitStep(0)
		killed := time.Now()
		c.members[0].kill()
		c.awaitStep(1)
		took := c.members[1].took.Sub(killed)
		sum, worst = sum+took, max(worst, took)
		for _, x := range c.members {
			x.kill()
		}
	}
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), "ms/takeover")
	b.ReportMetric(float64(worst.Microseconds())/1000, "ms/worst")
}
