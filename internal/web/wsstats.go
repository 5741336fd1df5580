package web

import (
	"math"
	"sync"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// statsPush is what stands in the node, and how much it answers.
type statsPush struct {
	Push       string      `json:"push"`
	Role       string      `json:"role"`
	Epoch      locks.Token `json:"epoch"`
	Seq        uint64      `json:"seq"`
	Keys       int         `json:"keys"`
	Held       int         `json:"held"`
	Waiters    int         `json:"waiters"`
	Sessions   int         `json:"sessions"`
	Grants     float64     `json:"grants"` // a second, and so the rest
	Releases   float64     `json:"releases"`
	NotGranted float64     `json:"not_granted"`
	Lost       float64     `json:"lost"`
}

// sampler takes what all watchers are told once a second, for all of them.
type sampler struct {
	mu     sync.Mutex // guards what follows
	at     time.Time
	counts map[string]uint64
	last   statsPush
}

const (
	sampleFresh = 900 * time.Millisecond // younger ones are told again
	sampleOld   = 5 * time.Second        // older ones are no measure of what happens now
)

// prime takes a sample where there is none that the next could be measured by.
func (v *sampler) prime(n *node.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(v.at) > sampleOld {
		v.takeLocked(n)
	}
}

// get returns what is now, or was a moment ago.
func (v *sampler) get(n *node.Node) statsPush {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(v.at) >= sampleFresh {
		v.takeLocked(n)
	}
	return v.last
}

func (v *sampler) takeLocked(n *node.Node) {
	st, now := n.Status(), time.Now()
	span := now.Sub(v.at).Seconds()
	rate := func(c locks.Code) float64 {
		if span > sampleOld.Seconds() {
			return 0
		}
		return math.Round(float64(st.Counts[c.String()]-v.counts[c.String()])/span*10) / 10
	}
	v.last = statsPush{
		Push: "stats", Role: st.Role.String(), Epoch: st.Epoch, Seq: st.Seq, Keys: st.Stats.Keys, Held: st.Stats.Held,
		Waiters: st.Stats.Waiters, Sessions: st.Sessions, Grants: rate(locks.Granted), Releases: rate(locks.Released),
		NotGranted: rate(locks.NotGranted), Lost: rate(locks.Lost),
	}
	v.at, v.counts = now, st.Counts
}
