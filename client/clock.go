package client

import "time"

// instant is a time on the client's monotonic clock, in nanoseconds since
// shortly before the client was made; 0 = none.
//
// It is the clock behind time.Since. It stands still while a machine is
// suspended (on Linux it is CLOCK_MONOTONIC), not while a process is stopped.
type instant int64

type clock struct{ base time.Time }

func newClock() clock {
	return clock{base: time.Now().Add(-time.Second)} // so that now is never 0
}

func (k clock) now() instant                  { return instant(time.Since(k.base)) }
func (k clock) time(t instant) time.Time      { return k.base.Add(time.Duration(t)) }
func (k clock) of(t time.Time) instant        { return instant(t.Sub(k.base)) }
func (t instant) add(d time.Duration) instant { return t + instant(d) }
func (t instant) sub(u instant) time.Duration { return time.Duration(t - u) }

// milli is a number of milliseconds as the wire has it.
func milli(ms uint32) time.Duration { return time.Duration(ms) * time.Millisecond }
