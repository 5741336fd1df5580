//go:build linux

package cluster

import (
	"cmp"
	"slices"
	"time"
)

// freezes are the hand-offs that the nodes' logs tell of, as faults of a history that began then. Wall clocks serve: the
// nodes are on this machine.
func (s *set) freezes(began time.Time) (all []fault) {
	var lines []line
	for _, n := range s.nodes {
		for _, life := range n.lives {
			lines = append(lines, life.since(0, isTurn)...)
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	const slack = 20 * time.Millisecond // for what was on its way
	at := func(t time.Time) instant { return instant(t.Round(0).Sub(began.Round(0))) }
	for i, l := range lines {
		if l.Event != "hand-off begins" {
			continue
		}
		end := l.Time.Add(freezeLimit)
		for _, next := range lines[i+1:] {
			if next.Event != "hand-off begins" {
				end = next.Time
				break
			}
		}
		all = append(all, fault{freeze, at(l.Time) - instant(slack), at(end) + instant(slack)})
	}
	return all
}

// freezeLimit is the longest that a hand-off may take.
const freezeLimit = 4500 * time.Millisecond

// isTurn picks what begins and ends a hand-off.
func isTurn(l line) bool {
	return l.Event == "hand-off begins" || l.Event == "hand-off ended" || l.Event == "role" && l.Role == "active"
}
