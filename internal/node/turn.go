package node

import (
	"context"
	"time"

	"holdfast/internal/locks"
)

const (
	// expiryPiece bounds the deadlines that are done under one hold of the mutex,
	// so that a storm of expiries does not stall everyone else (p99 in a storm of
	// 100,000: 0.3 instead of 1.1 ms).
	expiryPiece = 512

	// rousePiece bounds the keys that are looked at under one hold after an activation.
	rousePiece = 1000

	// longestSleep bounds the timer's sleep: a deadline further away is looked at again.
	longestSleep = time.Hour
)

// Run serves deadlines, and tells the machine the time, until ctx ends.
// Afterwards the node serves nothing.
func (n *Node) Run(ctx context.Context) error {
	timer := time.NewTimer(longestSleep)
	defer timer.Stop()
	defer n.end()
	var touched []*Session
	for {
		sleep := n.turn(&touched)
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-n.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Turn does all that is due now and returns how long to wait before the next
// call: what Run does, for callers with a clock of their own.
func (n *Node) Turn() time.Duration {
	var touched []*Session
	return n.turn(&touched)
}

// turn does all that is due, a piece at a time, and returns how long to sleep.
func (n *Node) turn(touched *[]*Session) time.Duration {
	for {
		now := n.lock()
		if n.cluster != nil && now >= n.tickAt {
			n.tickAt = now.Add(n.beat)
			n.stepLocked(now, tick)
			n.noteEndedLocked()
		}
		more := n.workLocked(now)
		n.timerAt = n.nextLocked()
		sleep := min(n.timerAt.Sub(n.clock.now()), longestSleep)
		n.refreshLocked()
		*touched = n.unlock(nil, *touched)
		if !more {
			return max(sleep, 0)
		}
	}
}

// workLocked does a piece of what is due in the table, and says whether there is more.
func (n *Node) workLocked(now locks.Time) bool {
	if n.cluster == nil && n.table.Next() > now && !n.rousing || n.standingLocked(now) != serves {
		return false
	}
	fx := n.takeEffects()
	n.recordDueLocked(now, fx)
	n.table.Advance(now, expiryPiece, fx)
	if n.rousing {
		n.rousing = n.table.Rouse(now, rousePiece, fx)
	}
	more := n.table.Next() <= now || n.rousing
	n.settleLocked(now, fx)
	return more
}

// end turns everybody away: there is nobody any more who would tell the machine the time.
func (n *Node) end() {
	now := n.lock()
	n.left = true
	n.turnAwayLocked(now)
	n.refreshLocked()
	n.unlock(nil, nil)
}

// nextLocked is when the timer is needed next.
func (n *Node) nextLocked() locks.Time {
	next := locks.Never
	if n.isActiveLocked() && !n.frozen && !n.left {
		next = n.table.Next()
	}
	if n.cluster != nil {
		next = min(next, n.tickAt)
	}
	return next
}

// wakeTimerLocked tells the timer of a deadline before the one it waits for.
func (n *Node) wakeTimerLocked() {
	next := n.nextLocked()
	if next >= n.timerAt && !n.rousing {
		return
	}
	n.timerAt = next
	select {
	case n.wake <- struct{}{}:
	default: // it was told already and has not looked yet
	}
}
