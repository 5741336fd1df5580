package locks_test

import (
	"time"

	. "holdfast/internal/locks"
)

// profile is one way of drawing commands. Each kind of trouble has its own: a
// mixture of everything seldom gets deep into anything.
type profile struct {
	name     string
	cfg      Config
	keys     int
	sessions int
	tickets  int // how many tickets are in use at one time, 0 = no tickets
	refs     int
	steps    []time.Duration // time passes in these, drawn evenly
	leases   []time.Duration
	waits    []time.Duration
	slots    []uint16
	shared   int // per cent of the acquires, like the next ones
	try      int
	retry    int
	bound    int
	push     int
	ticketed int
	bad      int   // acquires with an argument that no table accepts
	detach   int   // per cent of the steps
	sweep    int   // per cent of the steps that advance
	most     []int // bounds of an advance
	restart  int   // one in so many steps starts the follower over, another one promotes it
}

const ms = time.Millisecond

// ordinary is what the profiles depart from.
func ordinary() profile {
	return profile{
		cfg: Config{
			Rank: 3, Seed: 1, ClockAtZero: 1000, DefaultLease: 20 * ms, MaxLease: 100 * ms, ReattachGrace: 7 * ms,
			MaxKeys: 1000, MaxKeyBytes: 1 << 20, MaxWaiters: 1000, MaxWaitersPerKey: 200, MaxPending: 100,
		},
		keys: 8, sessions: 12, tickets: 40, refs: 5,
		steps:  []time.Duration{0, 0, 1, 300, ms / 2, ms, 3 * ms},
		leases: []time.Duration{0, ms, 5 * ms, 10 * ms, 30 * ms, 100 * ms},
		waits:  []time.Duration{0, 0, 1, ms, 5 * ms, 20 * ms},
		slots:  []uint16{0, 0, 0, 1, 1, 1, 2, 3},
		shared: 30, try: 10, retry: 30, bound: 25, push: 30, ticketed: 60, bad: 2,
		detach: 4, sweep: 10, most: []int{0, 0, 1, 2, 5}, restart: 3000,
	}
}

// with returns the ordinary profile with a name and changes.
func with(name string, change func(p *profile)) profile {
	p := ordinary()
	p.name = name
	change(&p)
	return p
}

var profiles = []profile{
	with("ordinary", func(p *profile) {}),
	with("one key, long queue", func(p *profile) {
		p.keys, p.sessions, p.tickets = 1, 60, 300
		p.waits = []time.Duration{0, 0, 20 * ms, 200 * ms}
		p.steps = []time.Duration{0, 0, 0, 1, ms / 4}
		p.try, p.slots = 2, []uint16{0, 1}
	}),
	with("exclusive only", func(p *profile) {
		p.keys, p.shared, p.slots = 3, 0, []uint16{0, 1}
	}),
	with("many keys", func(p *profile) {
		p.keys, p.sessions, p.tickets, p.sweep = 150, 20, 400, 5
	}),
	with("no tickets", func(p *profile) { p.tickets, p.keys = 0, 3 }),
	with("tiny grace", func(p *profile) {
		p.cfg.ReattachGrace, p.detach, p.bound = ms, 20, 50
	}),
	with("no grace at all", func(p *profile) { p.cfg.ReattachGrace, p.detach = 0, 15 }),
	with("ties at one instant", func(p *profile) {
		p.cfg.ReattachGrace, p.cfg.DefaultLease, p.detach = 2*ms, 2*ms, 12
		p.steps = []time.Duration{0, 0, 0, 0, 0, ms, 2 * ms}
		p.leases = []time.Duration{0, ms, 2 * ms, 4 * ms}
		p.waits = []time.Duration{0, ms, 2 * ms, 4 * ms}
	}),
	with("semaphores", func(p *profile) {
		p.keys, p.slots, p.shared = 3, []uint16{3, 3, 3, 3, 4, 0}, 3
	}),
	with("shared", func(p *profile) {
		p.keys, p.shared, p.slots = 2, 75, []uint16{0, 1}
		p.waits = []time.Duration{0, ms, 5 * ms}
	}),
	with("limits of keys", func(p *profile) {
		p.keys, p.cfg.MaxKeys, p.cfg.MaxKeyBytes = 12, 5, 24
	}),
	with("limits of waiters", func(p *profile) {
		p.keys, p.sessions, p.slots, p.shared = 4, 4, []uint16{0, 1}, 10
		p.cfg.MaxWaiters, p.cfg.MaxWaitersPerKey, p.cfg.MaxPending = 7, 4, 3
		p.waits = []time.Duration{0, 0, 0, 10 * ms}
		p.leases = []time.Duration{5 * ms, 100 * ms}
	}),
	with("late sweeps", func(p *profile) {
		p.sweep, p.most = 1, []int{1, 2, 3}
		p.steps = []time.Duration{0, ms, 10 * ms}
	}),
	with("storm of ends", func(p *profile) {
		p.keys, p.sessions, p.sweep, p.most = 60, 30, 40, []int{1, 2, 3}
		p.steps = []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 40 * ms}
		p.leases = []time.Duration{ms, 5 * ms}
	}),
	with("many reigns", func(p *profile) {
		p.restart, p.detach, p.sweep = 60, 10, 5
	}),
	with("tokens outrun the clock", func(p *profile) {
		p.cfg.ClockAtZero, p.cfg.Rank = 0, 7
		p.steps = []time.Duration{0, 0, 0, 1, 499, 500, 1001}
		p.leases = []time.Duration{ms}
	}),
}
