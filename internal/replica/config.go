package replica

import (
	"errors"
	"fmt"
	"time"
)

// Config is what a machine needs to know. Start from DefaultConfig.
type Config struct {
	Rank        Rank        // this node's index in Names
	Names       []string    // the peers list with this node in it; 1 to 8, each once
	Incarnation Incarnation // random per process start; not 0
	Major       uint16      // version: other majors are refused
	Minor       uint16      // version: more than one apart is refused
	Software    string      // version as people write it
	Native      string      // advertised native address, host:port
	HTTP        []string    // advertised HTTP addresses, URLs; at most 8
	Limits      []byte      // the state owner's limits, opaque; at most 256 bytes
	WallAtZero  int64       // wall clock at Time 0, milliseconds since 1970

	Heartbeat     time.Duration // between heartbeats; at most a quarter of Suspicion
	Suspicion     time.Duration // silence after which a peer is not alive
	StartGrace    time.Duration // how long a start waits for peers that are not heard; longer than Suspicion plus a redial
	TakeBackDelay time.Duration // how long a node of higher priority is synced before it takes over; 0 = at once
	Preempt       bool          // whether a node of higher priority takes over at all
	Ack           bool          // hold replies until a synced standby has acknowledged
	LogBytes      int           // of encoded events kept for peers that lag; at least 1024

	// Of an earlier process, where a journal is kept; zero otherwise.
	Position Position
	Lineage  Lineage
	Highest  Token // the highest token that was in use or heard
}

// DefaultConfig returns the settings of a server that was configured with nothing but its peers.
func DefaultConfig() Config {
	return Config{
		Heartbeat:     100 * time.Millisecond,
		Suspicion:     time.Second,
		StartGrace:    2 * time.Second,
		TakeBackDelay: 5 * time.Second,
		Preempt:       true,
		LogBytes:      16 << 20,
	}
}

// The protocol's fixed spans.
const (
	askTime       = time.Second             // rule 4: how long fresh answers are waited for
	fetchTime     = time.Second             // rule 5: how long a more advanced state is fetched
	prepareTime   = 500 * time.Millisecond  // hand-off: how long a successor may take to be in step
	freezeBound   = 4500 * time.Millisecond // the longest freeze
	offerPatience = 2500 * time.Millisecond // an offer without any progress; with a wake-up before it (twice the suspicion time) within the freeze's bound
	retryTime     = 200 * time.Millisecond  // between tries of what was refused
	hashPeriod    = 10 * time.Second        // between comparisons of the state's hash
	clockBound    = time.Hour               // peers whose clocks differ by more refuse each other
	dampingSpan   = 10 * time.Minute        // take-backs within it double the delay
	dampingBound  = 80 * time.Second        // the longest delay that doubling leads to
)

// lossGap is how far above the highest token heard a promotion after a loss
// starts, in tokens: half a second, in which the lost active may have taken
// tokens that nobody heard of.
const lossGap = 8 << 20

// maxStateBytes bounds one message's events or chunk.
const maxStateBytes = 4 << 20

// Validate returns all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if n := len(c.Names); n < 1 || n > MaxNodes {
		bad("peers list: has %d nodes; give 1 to %d", n, MaxNodes)
	}
	if c.Rank < 0 || int(c.Rank) >= len(c.Names) {
		bad("rank %d: must be an index of the peers list, 0 to %d", c.Rank, len(c.Names)-1)
	}
	seen := map[string]bool{}
	for _, name := range c.Names {
		if name == "" || len(name) > maxNameBytes {
			bad("peers list: a name of %d bytes; give 1 to %d", len(name), maxNameBytes)
		}
		if seen[name] {
			bad("peers list: %q stands in it twice", name)
		}
		seen[name] = true
	}
	if c.Incarnation == 0 {
		bad("incarnation: must not be 0")
	}
	if c.Heartbeat <= 0 || c.Suspicion < 4*c.Heartbeat {
		bad("heartbeat %v: must be above 0 and at most a quarter of the suspicion time %v", c.Heartbeat, c.Suspicion)
	}
	if c.StartGrace <= c.Suspicion {
		bad("start-up grace %v: must be longer than the suspicion time %v", c.StartGrace, c.Suspicion)
	}
	if c.TakeBackDelay < 0 {
		bad("take-back delay %v: must not be negative", c.TakeBackDelay)
	}
	if c.LogBytes < 1<<10 {
		bad("log bytes %d: at least 1024", c.LogBytes)
	}
	if len(c.HTTP) > maxAddresses || len(c.Limits) > maxLimitBytes {
		bad("advertised: at most %d HTTP addresses and %d bytes of limits", maxAddresses, maxLimitBytes)
	}
	return errors.Join(errs...)
}
