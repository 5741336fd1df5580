package bench

import (
	"fmt"
	"strings"
	"time"

	"holdfast/cmd/holdfast/internal/session"
)

// Workload names what the connections do.
type Workload string

const (
	Closed    Workload = "closed"    // one request outstanding per connection, distinct keys
	Pipelined Workload = "pipelined" // Depth requests outstanding per connection, distinct keys
	Handoff   Workload = "handoff"   // all connections wait in line for one key
	Held      Workload = "held"      // keys are acquired and not released
)

// Workloads lists all of them in the order of their introduction above.
var Workloads = []Workload{Closed, Pipelined, Handoff, Held}

// Bounds that protect the machine that runs the benchmark.
const (
	MaxConnections = 10_000
	MaxDepth       = 65_536 // the server's default bound on pending requests of one connection
	MaxKeys        = 10_000_000
)

// Config is one run of one workload.
type Config struct {
	Addr        string // native address
	Session     session.Config
	Workload    Workload
	Connections int           // 1 to MaxConnections; in handoff the waiters, one more holds
	Depth       int           // requests outstanding per connection, 1 to MaxDepth; closed and handoff: 1
	Keys        int           // distinct keys of all connections together, at least one for each outstanding request; handoff: 1
	Duration    time.Duration // measured time; held ends with its last key instead
	Warmup      time.Duration // load before the measured time; handoff and held: none
	Tickets     bool          // every acquire carries a ticket of its own, as the official clients send it
	Leave       bool          // held: leave the keys to their lease instead of releasing them
	// OnProgress is called about once a second by Run, if it is not nil.
	OnProgress func(Progress)
}

// Progress is how far a run has come.
type Progress struct {
	Workload   Workload
	Elapsed    time.Duration
	Operations uint64 // since the start, warm-up included
	Rate       float64
	Errors     uint64
}

// Defaults returns the sizes of w: those of the measurements in the
// documentation.
func Defaults(w Workload) Config {
	c := Config{Workload: w, Duration: 10 * time.Second, Warmup: time.Second}
	switch w {
	case Closed:
		c.Connections, c.Depth, c.Keys = 50, 1, 65_536
	case Pipelined:
		c.Connections, c.Depth, c.Keys = 8, 128, 65_536
	case Handoff:
		c.Connections, c.Depth, c.Keys, c.Warmup = 100, 1, 1, 0
	case Held:
		c.Connections, c.Depth, c.Keys, c.Warmup = 8, 128, 1_000_000, 0
	}
	return c
}

// Validate reports every problem of c in one error.
func (c *Config) Validate() error {
	var problems []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	check(c.Connections >= 1 && c.Connections <= MaxConnections, "connections: %d; 1 to %d", c.Connections, MaxConnections)
	check(c.Depth >= 1 && c.Depth <= MaxDepth, "depth: %d; 1 to %d", c.Depth, MaxDepth)
	check(c.Keys >= 1 && c.Keys <= MaxKeys, "keys: %d; 1 to %d", c.Keys, MaxKeys)
	if c.Workload == Closed || c.Workload == Pipelined {
		check(c.Keys >= c.Connections*c.Depth, "keys: %d; at least one for each of the %d outstanding requests", c.Keys, c.Connections*c.Depth)
	}
	check(c.Duration > 0 && c.Duration <= time.Hour, "duration: %v; more than 0, at most 1h", c.Duration)
	check(c.Warmup >= 0 && c.Warmup <= time.Hour, "warmup: %v; 0 to 1h", c.Warmup)
	if problems != nil {
		return fmt.Errorf("%s: %s", c.Workload, strings.Join(problems, "; "))
	}
	return nil
}
