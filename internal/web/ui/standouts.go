package ui

import (
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// standouts are the rows of a snapshot that stand out.
type standouts struct {
	held, crowded, waited []*locks.Row
}

const standoutRows = 5

// standouts looks for them once for each snapshot, however many look on.
func (u *UI) standouts(rows *node.Rows) *standouts {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen != rows {
		u.seen, u.top = rows, &standouts{
			held:    foremost(rows.Rows, "held_for", func(r *locks.Row) bool { return r.Holders > 0 }),
			crowded: foremost(rows.Rows, "waiters", func(r *locks.Row) bool { return r.Waiters > 0 }),
			waited:  foremost(rows.Rows, "oldest_wait", func(r *locks.Row) bool { return r.Waiters > 0 }),
		}
	}
	return u.top
}

func foremost(rows []locks.Row, by string, match func(*locks.Row) bool) []*locks.Row {
	q := query{match: match, column: columnNamed(by), desc: true, size: standoutRows}
	return q.run(rows).rows
}

func standoutsOf(top *standouts, at locks.Time) []standout {
	held := standout{Title: "Held longest", Empty: "Nothing is held.", URL: "/ui/locks?sort=held_for"}
	for _, r := range top.held {
		held.Rows = append(held.Rows, standoutRow{runs(r.Key), keyURL(r.Key), ownerRuns(r.Owner), span(at.Sub(r.HeldSince))})
	}
	crowded := standout{Title: "Most waiters", Empty: "Nobody waits.", URL: "/ui/locks?sort=waiters"}
	for _, r := range top.crowded {
		crowded.Rows = append(crowded.Rows, standoutRow{runs(r.Key), keyURL(r.Key), ownerRuns(r.Owner), number(r.Waiters)})
	}
	return []standout{held, crowded}
}

// expired lists the leases that ran out within the last hour.
func (u *UI) expired(now time.Time) standout {
	s := standout{Title: "Ran out in the last hour", Empty: "No lease ran out.", URL: "/ui/events?kind=expired"}
	for _, e := range u.cfg.Events(EventFilter{Kind: "expired"}, standoutRows) {
		if age := now.Sub(e.At); age < time.Hour {
			s.Rows = append(s.Rows, standoutRow{runs(e.Key), keyURL(e.Key), runs(e.Owner), span(age) + " ago"})
		}
	}
	return s
}
