package node

import (
	"context"
	"sync"
	"time"

	"holdfast/internal/locks"
)

// Sample is what one second of a node was like.
type Sample struct {
	At       time.Time // the end of that second
	Role     Role
	Grants   uint32 // answers, repeated ones included
	Releases uint32
	Timeouts uint32 // waits that ended without a grant
	Expiries uint32 // leases that ran out; on a standby as well
	Held     int    // at the end of the second
	Waiting  int
	WaitP50  time.Duration // of the grants of that second; those that did not wait count as 0
	WaitP99  time.Duration
	Lag      time.Duration // of the live peer that is furthest behind; 0 on a node that is not the active
}

const (
	sampleEvery = time.Second
	samplesKept = 600
)

// History keeps the samples of the last ten minutes.
type History struct {
	// Static after construction.
	node *Node

	// Owned by Run.
	last totals

	mu   sync.Mutex // guards what follows; not held together with Node.mu
	ring [samplesKept]Sample
	n    int // samples taken in all
}

// NewHistory makes the history of n. It is empty until its Run does.
func NewHistory(n *Node) *History { return &History{node: n} }

// Run takes a sample every second until ctx ends.
func (h *History) Run(ctx context.Context) {
	h.last, _ = h.node.totals()
	every := time.NewTicker(sampleEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			h.take()
		case <-ctx.Done():
			return
		}
	}
}

// Samples returns what is kept, oldest first.
func (h *History) Samples() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := min(h.n, samplesKept)
	out := make([]Sample, 0, kept)
	for i := h.n - kept; i < h.n; i++ {
		out = append(out, h.ring[i%samplesKept])
	}
	return out
}

func (h *History) take() {
	now, s := h.node.totals()
	s.Grants, s.Releases = uint32(now.grants-h.last.grants), uint32(now.releases-h.last.releases)
	s.Timeouts, s.Expiries = uint32(now.timeouts-h.last.timeouts), uint32(now.expiries-h.last.expiries)
	h.last = now
	for _, m := range h.node.Members() {
		if m.Alive && s.Role == Active {
			s.Lag = max(s.Lag, m.Lag)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ring[h.n%samplesKept] = s
	h.n++
}

// totals are counts since the node's start.
type totals struct{ grants, releases, timeouts, expiries uint64 }

// totals returns the counts, and a sample of what is now. The waits since the
// last call go into the sample: there is one caller.
func (n *Node) totals() (totals, Sample) {
	n.mu.Lock()
	t := totals{n.counts[locks.Granted], n.counts[locks.Released], n.tally.timeouts, n.tally.expiries}
	st := n.table.Stats()
	s := Sample{Role: n.roleLocked(), Held: st.Held, Waiting: st.Waiters}
	fresh := t.grants - n.tally.grants
	n.tally.grants = t.grants
	waits := n.tally.waits
	n.tally.waits = waits0
	s.At = n.clock.wall(n.clock.now())
	n.mu.Unlock()
	s.WaitP50, s.WaitP99 = waits.quantile(fresh, 50), waits.quantile(fresh, 99)
	return t, s
}
