package node

import (
	"time"

	"holdfast/internal/locks"
)

// MarkAhead returns a token above every one that will be taken within d from
// now, as long as that is less than two million a second: what a data
// directory keeps, so that tokens go up over a restart.
func (n *Node) MarkAhead(d time.Duration) locks.Token {
	n.mu.Lock()
	defer n.mu.Unlock()
	ticks := uint64(d / tokenTick)
	byClock := n.cfg.Table.ClockAtZero + uint64(n.clock.now())/uint64(tokenTick) + ticks
	byCount := uint64(max(n.table.Stats().Highest, locks.Token(n.machine.Highest())))>>3 + ticks
	return locks.Token(max(byClock, byCount)+1) << 3
}

// Leapt says when tokens far above those in use were heard of, as those of
// another reign are: a mark that is kept should be stored anew at once.
func (n *Node) Leapt() <-chan struct{} { return n.leapt }

// watchLeapLocked looks for it; by the clock alone tokens rise by 16 million a second.
func (n *Node) watchLeapLocked() {
	const leap = locks.Token(time.Second/tokenTick) << 3
	now := max(n.table.Stats().Highest, locks.Token(n.machine.Highest()))
	if now > n.heard+leap {
		select {
		case n.leapt <- struct{}{}:
		default: // nobody has looked since the last one
		}
	}
	n.heard = now
}
