package sim

import (
	"fmt"
	"strings"
	"time"

	"holdfast/internal/replica"
)

// faults are what may happen in each kind of history.
var faults = map[string]string{
	"any":          "crash active-crash quickrestart pause active-pause cut oneway pair slow snap stop handoff jump drop drop",
	"graceful":     "stop handoff handoff slow drop",
	"partitions":   "cut cut oneway pair snap slow isolate drop",
	"ackcrash":     "wait active-crash slow slow drop",
	"handoffcrash": "handoff-crash handoff-crash handoff handoff-snap stop handoff-pause",
	"pauses":       "pause active-pause active-pause handoff cut drop",
	"restartall":   "restartall crash active-crash jump",
}

// fault does one thing to the cluster.
func (h *history) fault() {
	list := strings.Fields(faults[h.profile])
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
	p := h.any()
	if strings.HasPrefix(kind, "active-") || strings.HasPrefix(kind, "handoff") {
		p = h.active()
	}
	if !p.up || p.paused {
		if !p.up && !h.c.noLoss {
			h.w.log("start n%d", p.rank)
			p.start()
		}
		return
	}
	h.w.log("fault %s n%d", kind, p.rank)
	switch kind {
	case "crash", "active-crash":
		h.crash(p)
	case "quickrestart":
		p.crash()
		h.later(50*time.Millisecond, fmt.Sprintf("start n%d", p.rank), p.startIfDown)
	case "pause", "active-pause":
		h.pause(p, 5*time.Second)
	case "stop":
		h.stop(p)
	case "handoff":
		p.n.Handoff("")
		p.looked()
	case "handoff-crash", "handoff-snap", "handoff-pause":
		h.handoffAnd(p, strings.TrimPrefix(kind, "handoff-"))
	case "restartall":
		h.restartAll()
	case "jump":
		h.w.clocks[p.rank] += time.Duration(h.rand.IntN(100)) * time.Millisecond
	case "drop":
		h.clients[h.rand.IntN(len(h.clients))].drop(h.active())
	default:
		h.network(kind, p)
	}
}

func (p *process) startIfDown() {
	if !p.up {
		p.start()
	}
}

// crash: in histories where nothing may be lost, only one node is down at a
// time, and only while synced standbys stand.
func (h *history) crash(p *process) {
	if h.c.noLoss && !h.allSynced() {
		return
	}
	p.crash()
	h.later(4*time.Second, fmt.Sprintf("start n%d", p.rank), p.startIfDown)
}

func (h *history) allSynced() bool {
	a := h.active()
	if !a.up || a.m.Role() != replica.Active || a.m.Frozen() {
		return false
	}
	for _, p := range h.w.nodes {
		if !p.up {
			return false
		}
	}
	for _, s := range a.m.Status().Peers {
		if !s.Synced {
			return false
		}
	}
	return true
}

func (h *history) pause(p *process, most time.Duration) {
	p.pause()
	h.later(most, fmt.Sprintf("resume n%d", p.rank), func() {
		if p.up && p.paused {
			p.resume()
		}
	})
}

func (h *history) stop(p *process) {
	if h.c.noLoss && !h.allSynced() {
		return
	}
	p.stop()
	h.later(6*time.Second, fmt.Sprintf("start n%d", p.rank), p.startIfDown)
}

// handoffAnd asks for a hand-off and does something to one side in the middle.
func (h *history) handoffAnd(p *process, what string) {
	p.n.Handoff("")
	p.looked()
	r := h.rand
	h.w.after(time.Duration(r.IntN(60_000))*time.Microsecond, func() {
		victim := p
		if to := p.m.Status().HandingTo; to != replica.Nobody && r.IntN(3) > 0 {
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
			for _, l := range append([]*pipe(nil), victim.pipes...) {
				l.snap()
			}
		}
	})
}

func (h *history) restartAll() {
	for _, p := range h.w.nodes {
		if p.up {
			p.crash()
		}
	}
	for _, p := range h.w.nodes {
		h.later(3*time.Second, fmt.Sprintf("start n%d", p.rank), p.startIfDown)
	}
}

func (h *history) network(kind string, p *process) {
	o := h.w.nodes[(p.rank+1+h.rand.IntN(len(h.w.nodes)-1))%len(h.w.nodes)]
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
			if i != p.rank {
				h.cut(i, p.rank)
				h.cut(p.rank, i)
			}
		}
	case "oneway":
		h.cut(p.rank, o.rank)
	case "pair":
		h.cut(p.rank, o.rank)
		h.cut(o.rank, p.rank)
	case "slow":
		most := 300
		if h.profile == "graceful" { // a successor must be able to be in step in time
			most = 80
		}
		h.w.slow[[2]int{p.rank, o.rank}] = time.Duration(h.rand.IntN(most)) * time.Millisecond
	case "snap":
		for _, l := range append([]*pipe(nil), p.pipes...) {
			l.snap()
			h.w.changed[[2]int{l.ends[0].rank, l.ends[1].rank}] = h.w.now
		}
	}
	if h.rand.IntN(2) == 0 {
		h.later(4*time.Second, "heal", h.w.healAll)
	}
}

func (h *history) cut(from, to int) { h.w.setCut(from, to, true) }
