package node

import "holdfast/internal/locks"

// What every hold of the node's mutex begins and ends with.

// lock begins a hold of the mutex, at the instant that it returns.
func (n *Node) lock() locks.Time {
	n.mu.Lock()
	n.batch++
	return n.clock.now()
}

// unlock ends it; then it writes the log and flushes the sessions that were told
// something, other than own. scratch is memory to list them in, which it returns
// for the next time, with no session kept alive by it.
func (n *Node) unlock(own *Session, scratch []*Session) []*Session {
	scratch = scratch[:0]
	n.takeBackLocked()
	n.wakeTimerLocked()
	for _, s := range n.touched {
		if s != own {
			scratch = append(scratch, s)
		}
	}
	clear(n.touched)
	n.touched = n.touched[:0]
	reports := n.reports
	n.reports = nil
	n.mu.Unlock()
	n.write(reports)
	for _, s := range scratch {
		s.sink.Flush()
	}
	clear(scratch)
	return scratch
}

// takeBackLocked withdraws grants that could not be told.
func (n *Node) takeBackLocked() {
	for len(n.untold) > 0 {
		batch := n.untold
		n.untold = nil
		now := n.clock.now()
		if n.standingLocked(now) != serves {
			return // they stand for whoever has their ticket, or for their lease
		}
		fx := n.takeEffects()
		for i := range batch {
			n.table.Do(now, &batch[i], fx)
		}
		n.settleLocked(now, fx)
	}
}
