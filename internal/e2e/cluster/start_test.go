//go:build linux

package cluster

import (
	"fmt"
	"testing"
)

// C-46: whatever the order in which nodes start, at once or one after the other, the first of the list serves in the end.
func TestStartInEveryOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, serial := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v,one after the other=%v", order, serial), func(t *testing.T) {
				s := newSet(t, 3, quick)
				for _, i := range order {
					s.nodes[i].start()
					if serial {
						s.nodes[i].life.awaitLine(t, "its start", 0, func(l line) bool { return l.Msg == "started" })
					}
				}
				s.settled(s.nodes[0])
			})
		}
	}
}

// A part of the list starts without the rest: the first of those that are there serves when the start-up grace is over,
// and hands over to the one of higher priority that comes later.
func TestStartWithoutTheFirst(t *testing.T) {
	s := newSet(t, 3, quick, "HOLDFAST_SUSPICION=400ms", "HOLDFAST_START_GRACE=600ms")
	s.nodes[2].start()
	s.nodes[1].start()
	s.settled(s.nodes[1])
	l := startLoad(t, s, shortLease)
	s.nodes[0].start()
	s.settled(s.nodes[0])
	l.finish()
}
