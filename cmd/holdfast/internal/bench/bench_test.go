package bench

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/cmd/holdfast/internal/fakeserver"
	"holdfast/cmd/holdfast/internal/session"
	"holdfast/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a run of a moment.
func small(w Workload, addr string) Config {
	c := Defaults(w)
	c.Addr = addr
	c.Session = session.Config{Owner: "test", Software: "test", Timeout: 5 * time.Second}
	c.Connections, c.Duration, c.Warmup = 3, 200*time.Millisecond, 0
	if w == Pipelined || w == Held {
		c.Depth = 8
	}
	if w != Handoff {
		c.Keys = 240
	}
	return c
}

func mustRun(t *testing.T, ctx context.Context, c Config) *Result {
	t.Helper()
	r, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWorkloads(t *testing.T) {
	for _, w := range Workloads {
		t.Run(string(w), func(t *testing.T) {
			server := fakeserver.NewServer()
			c := small(w, server.Start(t))
			c.Tickets = true
			r := mustRun(t, t.Context(), c)
			if r.Operations == 0 || r.Rate <= 0 || r.Errors != nil || r.Failure != "" || r.Partial {
				t.Errorf("result %+v", r)
			}
			if l := r.Latency; l.Samples == 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max {
				t.Errorf("latency %+v", l)
			}
			if n := server.Held(); n != 0 {
				t.Errorf("%d keys left behind", n)
			}
		})
	}
}

// Every outstanding request has keys of its own, and uses all of them in turn.
func TestLoopUsesAllKeys(t *testing.T) {
	server := fakeserver.NewServer()
	c := small(Pipelined, "")
	c.Duration = 30 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	keys := map[string]bool{}
	server.Intercept = func(_ *fakeserver.Conn, r *wire.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Op == wire.OpAcquire {
			keys[string(r.Key)] = true
		}
		if len(keys) == c.Keys {
			cancel()
		}
		return false
	}
	c.Addr = server.Start(t)
	r := mustRun(t, ctx, c)
	if len(keys) != c.Keys || r.Errors != nil {
		t.Errorf("%d keys used, errors %v; want %d without errors", len(keys), r.Errors, c.Keys)
	}
}

func TestHeldTakesEveryKeyAndCanLeaveThem(t *testing.T) {
	server := fakeserver.NewServer()
	c := small(Held, server.Start(t))
	c.Keys = 1001 // no multiple of the connections
	c.Leave = true
	r := mustRun(t, t.Context(), c)
	if r.Operations != 1001 || server.Held() != 1001 {
		t.Errorf("%d acquired, %d held; want 1001 of both", r.Operations, server.Held())
	}
}

func TestHandoffOrder(t *testing.T) {
	server := fakeserver.NewServer()
	r := mustRun(t, t.Context(), small(Handoff, server.Start(t)))
	o := r.Order
	if o == nil || o.Rounds < minRounds || o.Pairs != 3*o.Rounds || o.Broken() {
		t.Errorf("order %+v", o)
	}
	if r.Operations != uint64(3*o.Rounds) {
		t.Errorf("%d hand-offs in %d rounds of 3 waiters", r.Operations, o.Rounds)
	}
}

// faultyLine is a server whose queue is broken: it does not answer acquires without TRY, but
// hands the waiters to onRelease.
func faultyLine(onRelease func(waiting []func(token uint64)) (rest []func(token uint64))) *fakeserver.Server {
	server := fakeserver.NewServer()
	queue := make(chan []func(token uint64), 1)
	queue <- nil
	server.Intercept = func(c *fakeserver.Conn, r *wire.Request) bool {
		request := *r
		request.Key = []byte(string(r.Key))
		switch {
		case r.Op == wire.OpAcquire && r.Flags&wire.FlagTry != 0:
			c.Reply(r, wire.Reply{Status: wire.StatusGranted, Token: 1})
		case r.Op == wire.OpAcquire:
			queue <- append(<-queue, func(token uint64) {
				c.Reply(&request, wire.Reply{Status: wire.StatusGranted, Token: token})
			})
		case r.Op == wire.OpRelease:
			queue <- onRelease(<-queue)
			c.Reply(r, wire.Reply{Status: wire.StatusReleased})
		default:
			return false
		}
		return true
	}
	return server
}

func TestHandoffFindsTwoHolders(t *testing.T) {
	server := faultyLine(func(waiting []func(uint64)) []func(uint64) {
		for _, grant := range waiting {
			grant(1) // the token of the first holder
		}
		return nil
	})
	r := mustRun(t, t.Context(), small(Handoff, server.Start(t)))
	if o := r.Order; o.TwoHolders != 3*o.Rounds || !o.Broken() {
		t.Errorf("order %+v; want every one of 3 grants in each round found out", o)
	}
}

func TestHandoffFindsLastComeFirstServed(t *testing.T) {
	token := uint64(1)
	server := faultyLine(func(waiting []func(uint64)) []func(uint64) {
		if len(waiting) == 0 {
			return nil
		}
		token++
		waiting[len(waiting)-1](token)
		return waiting[:len(waiting)-1]
	})
	r := mustRun(t, t.Context(), small(Handoff, server.Start(t)))
	if o := r.Order; o.Pairs == 0 || o.Inverted != o.Pairs || o.TwoHolders != 0 || !o.Broken() {
		t.Errorf("order %+v; want every pair inverted", o)
	}
}

func TestOrderCountsInvertedPairs(t *testing.T) {
	for _, c := range []struct {
		grants          []int
		pairs, inverted int
	}{
		{nil, 0, 0},
		{[]int{0, 1, 2}, 3, 0},
		{[]int{1, 0, 2}, 3, 1},
		{[]int{2, 1, 0}, 3, 3},
	} {
		var o Order
		o.add(c.grants)
		if o.Pairs != c.pairs || o.Inverted != c.inverted {
			t.Errorf("%v: %d of %d inverted; want %d of %d", c.grants, o.Inverted, o.Pairs, c.inverted, c.pairs)
		}
	}
}

// An interrupted run releases what it holds and says that it is partial.
func TestInterrupted(t *testing.T) {
	for _, w := range Workloads {
		t.Run(string(w), func(t *testing.T) {
			server := fakeserver.NewServer()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var requests atomic.Int32
			server.Intercept = func(*fakeserver.Conn, *wire.Request) bool {
				if requests.Add(1) == 100 {
					cancel()
				}
				return false
			}
			c := small(w, server.Start(t))
			c.Duration = time.Hour
			if w == Held {
				c.Keys = MaxKeys
			}
			r := mustRun(t, ctx, c)
			if !r.Partial || r.Errors != nil {
				t.Errorf("result %+v; want a partial one without errors", r)
			}
			if n := server.Held(); n != 0 {
				t.Errorf("%d keys left behind", n)
			}
		})
	}
}

func TestErrorsAreCountedByKind(t *testing.T) {
	for _, c := range []struct {
		workload Workload
		answer   wire.Reply // to every acquire
		kind     string
	}{
		{Held, wire.Reply{Status: wire.StatusNotGranted}, "not granted"},
		{Held, wire.Reply{Status: wire.StatusError, Code: wire.CodeLimit}, "error 5: limit reached"},
		{Held, wire.Reply{Status: wire.StatusError, Code: 999}, "unknown error"},
		{Pipelined, wire.Reply{Status: wire.StatusMoved}, "moved"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			server := fakeserver.NewServer()
			server.Intercept = func(conn *fakeserver.Conn, r *wire.Request) bool {
				if r.Op == wire.OpAcquire {
					conn.Reply(r, c.answer)
				}
				return r.Op == wire.OpAcquire
			}
			r := mustRun(t, t.Context(), small(c.workload, server.Start(t)))
			want := uint64(240)
			if c.workload == Pipelined {
				want = 24 // each outstanding request ends at the first
			}
			if r.Errors[c.kind] != want || len(r.Errors) != 1 || r.Operations != 0 {
				t.Errorf("errors %v, %d operations; want %d of %q", r.Errors, r.Operations, want, c.kind)
			}
		})
	}
}

func TestLostConnectionsEndTheRunEarly(t *testing.T) {
	for _, w := range Workloads {
		t.Run(string(w), func(t *testing.T) {
			server := fakeserver.NewServer()
			server.Intercept = func(c *fakeserver.Conn, r *wire.Request) bool {
				if r.Op == wire.OpAcquire {
					c.Close()
				}
				return r.Op == wire.OpAcquire
			}
			c := small(w, server.Start(t))
			c.Duration = time.Hour
			r := mustRun(t, t.Context(), c)
			if r.Errors["connection"] == 0 || r.Failure == "" || r.Operations != 0 {
				t.Errorf("result %+v; want lost connections", r)
			}
		})
	}
}

func TestSilentServer(t *testing.T) {
	for _, w := range Workloads {
		t.Run(string(w), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.NewServer()
				server.Intercept = func(_ *fakeserver.Conn, r *wire.Request) bool { return r.Op != wire.OpHello }
				c := small(w, "fake:1")
				c.Session.Dial = func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go server.Serve(theirs)
					return ours, nil
				}
				c.Warmup, c.Duration = time.Second, 10*time.Second
				ticks := 0
				c.OnProgress = func(Progress) { ticks++ }
				start := time.Now()
				r := mustRun(t, t.Context(), c)
				took := time.Since(start)
				if r.Errors["no answer"] == 0 || len(r.Errors) != 1 || r.Partial {
					t.Errorf("result %+v; want requests without an answer", r)
				}
				limit := 11*time.Second + grace
				if w == Handoff {
					limit = 11*time.Second + time.Minute
				} else if w == Held {
					limit = lease
				}
				if took > limit {
					t.Errorf("took %v; at most %v", took, limit)
				}
				if w != Handoff && ticks < 9 {
					t.Errorf("%d reports of progress in %v", ticks, took)
				}
			})
		})
	}
}

func TestRefusesWhatIsNotActive(t *testing.T) {
	server := fakeserver.NewServer()
	server.Hello.Role = wire.RoleStandby
	server.Hello.Node, server.Hello.Addr = []byte("n2"), []byte("10.0.0.1:7620")
	_, err := Run(t.Context(), small(Closed, server.Start(t)))
	if want := "node n2 is standby: name the active, 10.0.0.1:7620"; err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

func TestValidateReportsEveryProblem(t *testing.T) {
	c := Config{Workload: Pipelined, Connections: 0, Depth: 70_000, Keys: -1, Duration: 0, Warmup: -1}
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"connections: 0; 1 to 10000", "depth: 70000; 1 to 65536", "keys: -1", "duration: 0s", "warmup: -1ns"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v: does not mention %q", err, name)
		}
	}
	for _, w := range Workloads {
		if c := Defaults(w); c.Validate() != nil {
			t.Errorf("the defaults of %s: %v", w, c.Validate())
		}
	}
}

// The engine allocates nothing per operation.
func TestPairAllocatesNothing(t *testing.T) {
	r := &run{cfg: Defaults(Closed), epoch: time.Now(), keys: newKeySpace()}
	r.cfg.Tickets = true
	r.measure()
	w := &worker{run: r, slots: newSlots(0, 1), hist: newHistogram()}
	s := &w.slots[0]
	granted := &wire.Reply{Op: wire.OpAcquire, Status: wire.StatusGranted, Token: 1}
	released := &wire.Reply{Op: wire.OpRelease, Status: wire.StatusReleased}
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(1000, func() {
		w.pair(s, nil, 0, 16)
		buf = wire.AppendRequest(buf[:0], &s.req)
		w.pair(s, granted, time.Microsecond, 16)
		buf = wire.AppendRequest(buf[:0], &s.req)
		w.pair(s, released, time.Microsecond, 16)
	}); n != 0 {
		t.Errorf("%v allocations per operation", n)
	}
}
