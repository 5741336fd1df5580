// Package fixture reads the clock, under another name too.
package fixture

import (
	"time"

	clock "time"
)

func now() time.Time { return clock.Now() } // want: reads the clock: time.Now

var sleep = time.Sleep // want: reads the clock: time.Sleep

func durations(d time.Duration) time.Time {
	_ = d.Seconds()
	_ = time.Unix(0, 0).After(now()) // a method, not the function
	return time.Unix(0, 0).Add(3 * time.Second)
}

func wait(d time.Duration) {
	<-time.After(d) // want: reads the clock: time.After
}
