package replica

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var (
	simSeed  = flag.Uint64("seed", 0, "run this one history and print it")
	simFrom  = flag.Uint64("from", 1, "the first seed")
	simSeeds = flag.Int("seeds", 200, "how many histories")
)

// history is one simulated cluster with clients and faults, all from a seed.
type history struct {
	seed    uint64
	w       *world
	c       *checker
	rand    *rand.Rand
	ids     uint64
	profile string
	quiet   bool // faults have stopped
	lines   []string
	clients []*client
}

// simProfiles are the kinds of history; which one a seed makes is drawn.
var simProfiles = []string{"any", "any", "any", "graceful", "partitions", "ackcrash", "handoffcrash", "pauses", "restartall", "journal"}

func newHistory(seed uint64, broken sabotage) *history {
	r := rand.New(rand.NewPCG(seed, 7))
	h := &history{seed: seed, rand: r, profile: simProfiles[r.IntN(len(simProfiles))]}
	n := []int{2, 3, 3, 5, 8}[r.IntN(5)]
	if h.profile == "ackcrash" {
		n = max(n, 3)
	}
	cfg := DefaultConfig()
	cfg.LogBytes = []int{1 << 10, 1 << 12, 1 << 16}[r.IntN(3)]
	cfg.TakeBackDelay = time.Duration(r.IntN(1000)) * time.Millisecond
	cfg.Ack = r.IntN(2) == 0 || h.profile == "ackcrash"
	cfg.Preempt = true
	h.w = newWorld(seed, n, cfg)
	h.w.broken = broken
	h.w.disk = h.profile == "restartall" || h.profile == "journal"
	h.w.journal = h.profile == "journal"
	for i := range h.w.clocks {
		h.w.clocks[i] = time.Duration(r.IntN(200)-100) * time.Millisecond
	}
	longest := []int{2, 5, 30}[r.IntN(3)]
	h.w.latency = func() time.Duration {
		return time.Duration(100+r.IntN(longest*1000)) * time.Microsecond
	}
	h.c = newChecker(h.w)
	h.c.noLoss = h.profile == "graceful" || h.profile == "ackcrash"
	h.w.log = func(format string, args ...any) {
		h.lines = append(h.lines, fmt.Sprintf("%9.4fs ", h.w.now.Seconds())+h.w.text(fmt.Sprintf(format, args...)))
	}
	h.w.log("seed %d: %s, %d nodes, ack=%v, take-back delay %v, log %d bytes", seed, h.profile, n, cfg.Ack, cfg.TakeBackDelay, cfg.LogBytes)
	return h
}

// run plays the history and returns what is wrong with it, "" if nothing.
func (h *history) run() string {
	for _, n := range h.w.nodes {
		if h.profile == "graceful" || h.profile == "ackcrash" || h.rand.IntN(4) > 0 {
			n.start()
		}
	}
	for i := range 4 {
		h.clients = append(h.clients, &client{h: h, name: fmt.Sprintf("c%d", i)})
		h.clients[i].think()
	}
	h.w.run(3 * time.Second)
	end := h.w.now + 12*time.Second
	for h.w.now < end && h.c.fault == "" {
		h.fault()
		h.w.run(time.Duration(h.rand.IntN(1500)) * time.Millisecond)
	}
	h.stopFaults()
	for range 60 {
		if h.w.run(2 * time.Second); h.c.fault != "" || h.c.settled() == "" {
			break
		}
		if a := h.active(); a.up && a.m.damping.off {
			a.feed(HandoffRequested{To: 0}) // the operator hands back
		}
	}
	if s := h.c.settled(); s != "" {
		h.c.fail("not settled: %s", s)
	}
	h.c.unanswered()
	for _, n := range h.w.nodes {
		if n.up && h.c.fault == "" {
			h.c.final(n)
		}
	}
	return h.c.fault
}

func (h *history) stopFaults() {
	h.w.log("faults end")
	h.quiet = true
	h.w.healAll()
	for _, n := range h.w.nodes {
		if n.up && n.paused {
			n.resume()
		}
		if !n.up {
			n.start()
		}
	}
}

func (h *history) any() *node { return h.w.nodes[h.rand.IntN(len(h.w.nodes))] }

// active is a node that takes itself for the active, if there is one.
func (h *history) active() *node {
	for _, n := range h.w.nodes {
		if n.up && n.m.role == Active {
			return n
		}
	}
	return h.any()
}

// fault does one thing to the cluster.
func (h *history) fault() {
	kinds := map[string]string{
		"any":          "crash active-crash quickrestart pause active-pause cut oneway pair slow snap stop handoff jump",
		"graceful":     "stop handoff handoff slow",
		"partitions":   "cut cut oneway pair snap slow isolate",
		"ackcrash":     "wait active-crash slow slow",
		"handoffcrash": "handoff-crash handoff-crash handoff handoff-snap stop handoff-pause",
		"pauses":       "pause active-pause active-pause handoff cut",
		"journal":      "restartall crash crash active-crash quickrestart pause cut isolate handoff-crash",
		"restartall":   "restartall crash active-crash jump",
	}
	list := strings.Fields(kinds[h.profile])
	h.do(list[h.rand.IntN(len(list))])
}

func (h *history) later(most time.Duration, what string, do func()) {
	h.w.after(time.Duration(h.rand.Int64N(int64(most))), func() {
		if !h.quiet {
			h.w.log("%s", what)
			do()
		}
	})
}

func (h *history) do(kind string) {
	n := h.any()
	if strings.HasPrefix(kind, "active-") || kind == "handoff" || strings.HasPrefix(kind, "handoff-") {
		n = h.active()
	}
	if !n.up || n.paused {
		if !n.up && !h.c.noLoss {
			h.w.log("start n%d", n.rank)
			n.start()
		}
		return
	}
	h.w.log("fault %s n%d", kind, n.rank)
	switch kind {
	case "crash", "active-crash":
		h.crash(n)
	case "quickrestart":
		n.crash()
		h.later(50*time.Millisecond, fmt.Sprintf("start n%d", n.rank), n.startIfDown)
	case "pause", "active-pause":
		h.pause(n, 5*time.Second)
	case "stop":
		h.stop(n)
	case "handoff":
		n.feed(HandoffRequested{To: Nobody})
	case "handoff-crash", "handoff-snap", "handoff-pause":
		h.handoffAnd(n, strings.TrimPrefix(kind, "handoff-"))
	case "restartall":
		h.restartAll()
	case "jump":
		h.w.clocks[n.rank] += time.Duration(h.rand.IntN(100)) * time.Millisecond
	default:
		h.network(kind, n)
	}
}

func (n *node) startIfDown() {
	if !n.up {
		n.start()
	}
}

// crash: in histories where nothing may be lost, only one node is down at a
// time, and only while synced standbys stand.
func (h *history) crash(n *node) {
	if h.c.noLoss && !h.allSynced() {
		return
	}
	n.crash()
	h.later(4*time.Second, fmt.Sprintf("start n%d", n.rank), n.startIfDown)
}

func (h *history) allSynced() bool {
	a := h.active()
	for _, n := range h.w.nodes {
		if !n.up || n != a && !a.m.peers[n.rank].out.synced {
			return false
		}
	}
	return a.m.role == Active && a.m.frozen == 0
}

func (h *history) pause(n *node, most time.Duration) {
	n.pause()
	h.later(most, fmt.Sprintf("resume n%d", n.rank), func() {
		if n.up && n.paused {
			n.resume()
		}
	})
}

func (h *history) stop(n *node) {
	if h.c.noLoss && !h.allSynced() {
		return
	}
	n.feed(StopRequested{})
	h.later(6*time.Second, fmt.Sprintf("start n%d", n.rank), n.startIfDown)
}

// handoffAnd asks for a hand-off and does something to one side in the middle.
func (h *history) handoffAnd(n *node, what string) {
	n.feed(HandoffRequested{To: Nobody})
	h.w.after(time.Duration(h.rand.IntN(60_000))*time.Microsecond, func() {
		to := n.m.handoff.to
		victim := n
		if to != Nobody && h.rand.IntN(3) > 0 {
			victim = h.w.nodes[to]
		}
		if h.quiet || !victim.up || victim.paused {
			return
		}
		h.w.log("fault %s of n%d in the middle", what, victim.rank)
		switch what {
		case "crash":
			h.crash(victim)
		case "pause":
			h.pause(victim, 3*time.Second)
		case "snap":
			for _, l := range append([]*wire(nil), victim.wires...) {
				l.snap()
			}
		}
	})
}

func (h *history) restartAll() {
	for _, n := range h.w.nodes {
		n.crash()
	}
	for _, n := range h.w.nodes {
		h.later(3*time.Second, fmt.Sprintf("start n%d", n.rank), n.startIfDown)
	}
}

func (h *history) network(kind string, n *node) {
	o := h.w.nodes[(n.rank+1+h.rand.IntN(len(h.w.nodes)-1))%len(h.w.nodes)]
	switch kind {
	case "cut":
		side := make([]bool, len(h.w.nodes))
		for i := range side {
			side[i] = h.rand.IntN(2) == 0
		}
		for i := range side {
			for j := range side {
				if side[i] != side[j] {
					h.cut(i, j)
				}
			}
		}
	case "isolate":
		for i := range h.w.nodes {
			if i != n.rank {
				h.cut(i, n.rank)
				h.cut(n.rank, i)
			}
		}
	case "oneway":
		h.cut(n.rank, o.rank)
	case "pair":
		h.cut(n.rank, o.rank)
		h.cut(o.rank, n.rank)
	case "slow":
		most := 300
		if h.profile == "graceful" { // a successor must be able to be in step in time
			most = 80
		}
		h.w.slow[[2]int{n.rank, o.rank}] = time.Duration(h.rand.IntN(most)) * time.Millisecond
	case "snap":
		for _, l := range append([]*wire(nil), n.wires...) {
			l.snap()
		}
	}
	if h.rand.IntN(2) == 0 {
		h.later(4*time.Second, "heal", h.w.healAll)
	}
}

func (h *history) cut(from, to int) { h.w.setCut(from, to, true) }

// client takes keys and gives them back, and does not give up: it asks again
// with the same ticket, elsewhere, until it has an answer.
type client struct {
	h      *history
	name   string
	round  int
	node   int
	key    string
	ticket string
	token  Token
	try    uint64 // the request whose answer counts
}

func (c *client) think() {
	c.h.w.after(time.Duration(c.h.rand.IntN(100))*time.Millisecond, func() {
		if c.h.quiet {
			return
		}
		c.round++
		c.key = toyKey(uint64(c.h.rand.IntN(toyKeys)))
		c.ticket = fmt.Sprintf("%s.%d", c.name, c.round)
		c.token = 0
		c.ask("acquire")
	})
}

func (c *client) ask(op string) {
	c.h.ids++
	id := c.h.ids
	c.try = id
	n := c.h.w.nodes[c.node%len(c.h.w.nodes)]
	boot := n.boot
	r := request{id: id, op: op, key: c.key, ticket: c.ticket, token: c.token, reply: func(a answer) {
		if c.try == id {
			c.heard(op, a)
		}
	}}
	c.h.w.after(time.Millisecond, func() {
		if n.up && n.boot == boot {
			n.request(r)
		}
	})
	c.h.w.after(400*time.Millisecond, func() {
		if c.try == id {
			c.node = c.h.rand.IntN(len(c.h.w.nodes))
			c.ask(op)
		}
	})
}

func (c *client) heard(op string, a answer) {
	c.try = 0
	switch a.code {
	case "moved":
		if c.node = int(a.to); a.to == Nobody {
			c.node = c.h.rand.IntN(len(c.h.w.nodes))
		}
		c.h.w.after(20*time.Millisecond, func() { c.ask(op) })
	case "granted":
		c.token = a.token
		c.h.w.after(time.Duration(c.h.rand.IntN(400))*time.Millisecond, func() { c.ask("release") })
	default:
		c.think()
	}
}

func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		h := newHistory(*simSeed, honest)
		fault := h.run()
		t.Log(strings.Join(h.lines, "\n"))
		if fault != "" {
			t.Error(fault)
		}
		return
	}
	results := make(chan string)
	const workers = 2
	for i := range uint64(workers) {
		go func() {
			for seed := *simFrom + i; seed < *simFrom+uint64(*simSeeds); seed += workers {
				h := newHistory(seed, honest)
				fault := h.run()
				if fault != "" {
					fault = fmt.Sprintf("seed %d (%s): %s\nreplay with -run Simulation$ -seed %d -v", seed, h.profile, fault, seed)
				}
				results <- fault
			}
		}()
	}
	bad := 0
	for range *simSeeds {
		if fault := <-results; fault != "" {
			if bad++; bad <= 10 {
				t.Error(fault)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d histories are bad", bad, *simSeeds)
	}
}
