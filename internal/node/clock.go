package node

import (
	"fmt"
	"time"

	"holdfast/internal/locks"
)

// The token clock counts half-microseconds since the start of 2026. Until the
// end of 2042 its tokens (8 to the tick) stay below 2^53.
const tokenTick = 500 * time.Nanosecond

var (
	tokenEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tokenEnd   = time.Date(2043, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Clock is a process's monotonic clock, and what the wall clock said when it
// was at zero. The wall clock is never read again: a jump changes nothing.
type Clock struct {
	Zero time.Time         // by the wall clock, from the start of 2026 to the end of 2042
	Now  func() locks.Time // since Zero
}

// clock is a Clock that was judged.
type clock struct {
	Clock
	tokensAtZero uint64
}

// newClock takes the given clock, or the system's.
func newClock(c *Clock) (clock, error) {
	if c == nil {
		zero := time.Now()
		c = &Clock{Zero: zero, Now: func() locks.Time { return locks.Time(time.Since(zero)) }}
	}
	zero := c.Zero
	if zero.Before(tokenEpoch) || !zero.Before(tokenEnd) {
		return clock{}, errClock(zero)
	}
	// Not by Sub: a Duration from the wall clock is exact here, and spans of
	// centuries do not occur between these bounds.
	return clock{*c, uint64(zero.Round(0).Sub(tokenEpoch) / tokenTick)}, nil
}

func (c clock) now() locks.Time { return c.Now() }

func (c clock) wall(t locks.Time) time.Time { return c.Zero.Add(time.Duration(t)) }

// errClock is what New answers outside the years of the token clock.
func errClock(now time.Time) error {
	return fmt.Errorf("the system clock says %s: tokens need a clock between %s and %s; set the clock and start again",
		now.UTC().Format(time.RFC3339), tokenEpoch.Format(time.DateOnly), tokenEnd.Format(time.DateOnly))
}
