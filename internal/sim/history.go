package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// history is one simulated cluster with clients and faults, all from a seed.
type history struct {
	seed    uint64
	w       *world
	c       *checker
	rand    *rand.Rand
	ids     uint64
	profile string
	steps   int // faults to do; fewer than drawn while a failing history is being shrunk
	skip    map[int]bool
	quiet   bool // faults have stopped
	lines   []string
	clients []*client
}

// profiles are the kinds of history; which one a seed makes is drawn.
var profiles = []string{"any", "any", "any", "graceful", "partitions", "partitions", "ackcrash", "handoffcrash", "pauses", "restartall"}

func newHistory(seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 7))
	h := &history{seed: seed, rand: r, profile: profiles[r.IntN(len(profiles))], skip: map[int]bool{}}
	n := []int{2, 3, 3, 3, 3, 5, 5, 8}[r.IntN(8)]
	if h.profile == "ackcrash" {
		n = max(n, 3)
	}
	h.steps = 2 + r.IntN(8)
	cfg := replica.DefaultConfig()
	cfg.LogBytes = []int{1 << 10, 1 << 12, 1 << 16}[r.IntN(3)]
	cfg.TakeBackDelay = time.Duration(r.IntN(1000)) * time.Millisecond
	cfg.Ack = r.IntN(2) == 0 || h.profile == "ackcrash"
	h.w = &world{
		rand: rand.New(rand.NewPCG(seed, 1)), cfg: cfg, piece: 1 + r.IntN(4), cut: map[[2]int]bool{}, changed: map[[2]int]time.Duration{},
		slow: map[[2]int]time.Duration{}, clocks: make([]time.Duration, n),
		log: func(string, ...any) {}, disk: h.profile == "restartall",
	}
	for i := range n {
		h.w.cfg.Names = append(h.w.cfg.Names, fmt.Sprintf("n%d", i))
		h.w.nodes = append(h.w.nodes, &process{w: h.w, rank: i})
		h.w.clocks[i] = time.Duration(r.IntN(200)-100) * time.Millisecond
	}
	longest := []int{2, 5, 30}[r.IntN(3)]
	h.w.latency = func() time.Duration { return time.Duration(100+r.IntN(longest*1000)) * time.Microsecond }
	h.c = newChecker(h.w)
	h.c.noLoss = h.profile == "graceful" || h.profile == "ackcrash"
	return h
}

// print keeps the history's lines, for a seed that fails.
func (h *history) print() {
	h.c.verbose = true
	h.w.log = func(format string, args ...any) {
		h.lines = append(h.lines, fmt.Sprintf("%9.4fs ", h.w.now.Seconds())+fmt.Sprintf(format, args...))
	}
	h.w.log("seed %d: %s, %d nodes, %d faults, ack=%v, take-back delay %v, log %d bytes, pieces of %d",
		h.seed, h.profile, len(h.w.nodes), h.steps, h.w.cfg.Ack, h.w.cfg.TakeBackDelay, h.w.cfg.LogBytes, h.w.piece)
}

// run plays the history and returns what is wrong with it, "" if nothing.
func (h *history) run() string {
	for _, p := range h.w.nodes {
		if h.c.noLoss || h.rand.IntN(4) > 0 {
			p.start()
		}
	}
	for i := range 4 {
		h.clients = append(h.clients, &client{h: h, name: fmt.Sprintf("c%d", i), conns: map[*process]*conn{}})
		h.clients[i].think()
	}
	h.w.run(2500 * time.Millisecond)
	for i := 0; i < h.steps && h.c.fault == ""; i++ {
		// What the fault needs of chance is drawn from a source of its own, so that
		// leaving one out changes the others as little as can be.
		shared := h.rand
		h.rand = rand.New(rand.NewPCG(h.seed, 1000+uint64(i)))
		pause := time.Duration(h.rand.IntN(1500)) * time.Millisecond
		if !h.skip[i] {
			h.fault()
		}
		h.rand = shared
		h.w.run(pause)
	}
	h.stopFaults()
	h.settle()
	h.c.unanswered()
	for _, p := range h.w.nodes {
		if p.up && h.c.fault == "" {
			h.c.final(p)
		}
	}
	return h.c.fault
}

// settle waits until the cluster is whole again and its clients are done.
func (h *history) settle() {
	why := ""
	for range 60 {
		if h.w.run(2 * time.Second); h.c.fault != "" {
			return
		}
		if why = h.unsettled(); why == "" {
			return
		}
		if a := h.active(); a.up && a.m.Status().TakeBacksOff {
			a.n.Handoff(h.w.cfg.Names[0]) // the operator hands back
		}
	}
	for _, p := range h.w.nodes {
		if p.up {
			p.n.Inspect(func(_ *replica.Machine, t *locks.Table) {
				why += fmt.Sprintf("\nn%d at %s: %s", p.rank, p.m.Position(), dump(t, locks.Time(h.w.now-p.bootAt)))
			})
		}
	}
	h.c.fail("not settled: %s", why)
}

func (h *history) unsettled() string {
	for _, c := range h.clients {
		if c.busy {
			return fmt.Sprintf("%s is not through with %s", c.name, keyName(c.key))
		}
	}
	return h.c.settled()
}

func (h *history) stopFaults() {
	h.w.log("faults end")
	h.quiet = true
	h.w.healAll()
	for _, p := range h.w.nodes {
		if p.up && p.paused {
			p.resume()
		}
		if !p.up {
			p.start()
		}
	}
}

func (h *history) any() *process { return h.w.nodes[h.rand.IntN(len(h.w.nodes))] }

// active is a node that takes itself for the active, if there is one.
func (h *history) active() *process {
	for _, p := range h.w.nodes {
		if p.up && p.m.Role() == replica.Active {
			return p
		}
	}
	return h.any()
}
