package locks_test

import (
	"fmt"
	"strings"

	. "holdfast/internal/locks"
)

// coverage counts what a random test reached, so that what it never reached is
// seen.
type coverage struct {
	ops     [256]int
	codes   [256]int
	kinds   [256]int
	ended   [256]int // reasons of EventEnd
	left    [256]int // reasons of EventDequeue
	lost    [256]int // reasons of Lost
	held    int      // NotGranted for TRY
	timeout int      // NotGranted at the end of a wait
	steps   int

	promotions int
	merges     int
	snapshots  int // that a follower started over with
}

func (c *coverage) command(op Op) {
	c.steps++
	c.ops[op]++
}

func (c *coverage) effects(fx *Effects) {
	for i := range fx.Replies {
		r := &fx.Replies[i]
		c.codes[r.Code]++
		switch {
		case r.Code == Lost:
			c.lost[r.Reason]++
		case r.Code == NotGranted && r.Held:
			c.held++
		case r.Code == NotGranted:
			c.timeout++
		}
	}
	for i := range fx.Events {
		e := &fx.Events[i]
		c.kinds[e.Kind]++
		switch e.Kind {
		case EventEnd:
			c.ended[e.Reason]++
		case EventDequeue:
			c.left[e.Reason]++
		}
	}
}

// counts lists what was reached, and what was never reached although it should.
func (c *coverage) counts() (list, missing string) {
	var all, none strings.Builder
	add := func(what string, n int) {
		fmt.Fprintf(&all, "%12d  %s\n", n, what)
		if n == 0 {
			fmt.Fprintf(&none, "  %s\n", what)
		}
	}
	for op := OpAttach; op <= OpRemoveWaiter; op++ {
		add("command "+op.String(), c.ops[op])
	}
	for _, code := range Codes() {
		if code != LimitHolders { // needs 65,535 holders, and has a test of its own
			add("reply "+code.String(), c.codes[code])
		}
	}
	add("reply not granted: taken", c.held)
	add("reply not granted: wait over", c.timeout)
	for kind := EventEpoch; kind <= EventDequeue; kind++ {
		add("event "+kind.String(), c.kinds[kind])
	}
	for _, r := range []Reason{ByRelease, ByExpiry, ByForce, ByWithdrawal} {
		add("grant ended "+r.String(), c.ended[r])
	}
	for _, r := range []Reason{ByTimeout, ByCancel, ByRemoval, ByDetach} {
		add("waiter left "+r.String(), c.left[r])
	}
	for _, r := range []Reason{ByExpiry, ByForce} {
		add("lost "+r.String(), c.lost[r])
	}
	add("event trim", c.kinds[EventTrim])
	add("event ended", c.kinds[EventEnded])
	add("grant ended superseded", c.ended[BySupersede])
	add("waiter left superseded", c.left[BySupersede])
	add("lost superseded", c.lost[BySupersede])
	add("merges", c.merges)
	add("promotions", c.promotions)
	add("snapshots", c.snapshots)
	return all.String(), none.String()
}
