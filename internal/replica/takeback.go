package replica

import (
	"slices"
	"time"
)

// damping keeps a node that comes and goes from dragging the service to and fro.
type damping struct {
	times  []Time // of the take-backs within the last ten minutes, oldest first
	off    bool   // an operator handed over to a lower priority
	offFor Incarnation
	asked  Time
	began  bool // asked means something
}

// count notes a take-back at t.
func (d *damping) count(t Time) {
	d.times = append(d.times, t)
	if len(d.times) > maxTakeBacks {
		d.times = slices.Delete(d.times, 0, 1)
	}
}

// ages is what other nodes are told: instants mean nothing to them.
func (d *damping) ages(now Time) []time.Duration {
	d.prune(now)
	ages := make([]time.Duration, 0, len(d.times))
	for _, t := range d.times {
		ages = append(ages, now.Sub(t))
	}
	return ages
}

func (d *damping) prune(now Time) {
	for len(d.times) > 0 && now.Sub(d.times[0]) >= dampingSpan {
		d.times = slices.Delete(d.times, 0, 1)
	}
}

// learn keeps what the active says, so that the count survives it.
func (d *damping) learn(now Time, ages []time.Duration) {
	if len(ages) < len(d.times) {
		return
	}
	d.times = d.times[:0]
	for _, a := range ages {
		if a < dampingSpan {
			d.times = append(d.times, now.Add(-a))
		}
	}
	slices.Sort(d.times)
}

// take starts the count of a reign that was handed over.
func (d *damping) take(now Time, a *Activate) {
	d.times = d.times[:0]
	d.learn(now, a.TakeBacks)
	d.off, d.offFor = a.TakeBacksOff, a.OffFor
	if a.Why == WhyTakeBack {
		d.count(now)
	}
}

// restarted: the node that an operator put aside has restarted.
func (d *damping) restarted(old Incarnation) {
	if d.off && d.offFor == old {
		d.off = false
	}
}

// delay is how long a node is synced before it takes over.
func (d *damping) delay(now Time, base time.Duration) time.Duration {
	d.prune(now)
	delay := base
	for range d.times {
		if delay >= dampingBound {
			break
		}
		delay = min(2*delay, dampingBound)
	}
	return delay
}

// watchTakeBack asks the active, of lower priority, to hand over.
func (m *Machine) watchTakeBack() {
	f, d := &m.follow, &m.damping
	if !m.cfg.Preempt || m.stopping || m.role != Standby || !f.synced() || f.rank < m.self || m.waking.on || m.prepared.on {
		return
	}
	if m.peers[f.rank].link != f.link || m.peers[f.rank].said.TakeBacksOff || m.now.Sub(f.since) < d.delay(m.now, m.cfg.TakeBackDelay) {
		return
	}
	if d.began && m.now.Sub(d.asked) < m.cfg.Suspicion {
		return
	}
	d.began, d.asked = true, m.now
	m.note(FactTakeBack, f.rank, "")
	m.tell(f.rank, &TakeBack{})
}

// takeBackAsked: only nodes up to the asker are tried, so that the service
// moves up or stays.
func (m *Machine) takeBackAsked(r Rank) {
	if m.role == Active && r < m.self && !m.handoff.on && m.frozen == 0 && m.reigning == 0 && !m.damping.off && m.peers[r].out.synced {
		m.startHandoff(WhyTakeBack, r, Nobody)
	}
}
