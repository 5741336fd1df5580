package replica

import (
	"fmt"
	"math/bits"
	"time"
)

// Time is an instant of this process's monotonic clock, in nanoseconds since
// the process chose its zero. The machine never reads a clock: every input is
// given the time.
type Time int64

// Add returns t + d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns t - u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Rank is a node's index in the peers list; 0 is the highest priority.
type Rank int8

// MaxNodes is the most nodes of a cluster: a rank fits the low three bits of a token.
const MaxNodes = 8

// Nobody is the rank of no node.
const Nobody Rank = -1

// Token is a fencing token of the state owner: 8·n + rank. The machine only
// keeps the highest it heard of.
type Token uint64

// Epoch is the first token of an activation; it names the reign. 0 is none.
type Epoch uint64

// Seq numbers the events of one reign, from 1 on, without gaps.
type Seq uint64

// Incarnation is a random number that a process draws at its start; never 0.
type Incarnation uint64

// LinkID names one connection to a peer. Its owner never uses a number twice; 0 is none.
type LinkID uint64

// Position says how far a state has come: the reign, and the last event of it
// that is in the state.
type Position struct {
	Epoch Epoch
	Seq   Seq
}

// Less says whether q is more advanced.
func (p Position) Less(q Position) bool {
	return p.Epoch < q.Epoch || p.Epoch == q.Epoch && p.Seq < q.Seq
}

// IsZero says whether p is the position of a state that never followed anyone.
func (p Position) IsZero() bool { return p == Position{} }

func (p Position) String() string { return fmt.Sprintf("%d/%d", p.Epoch, p.Seq) }

// Role is what a node is in its cluster.
type Role uint8

const (
	Joining Role = iota + 1 // not in step yet: its state is empty, half a snapshot, or of an earlier process
	Standby                 // has a complete state
	Active                  // the one that serves
	numRoles
)

func (r Role) String() string {
	switch r {
	case Joining:
		return "joining"
	case Standby:
		return "standby"
	case Active:
		return "active"
	}
	return "unknown"
}

// ranks is a set of ranks.
type ranks uint8

func (s ranks) has(r Rank) bool { return r >= 0 && s&(1<<r) != 0 }
func (s *ranks) add(r Rank)     { *s |= 1 << r }
func (s *ranks) remove(r Rank)  { *s &^= 1 << r }
func (s ranks) empty() bool     { return s == 0 }
func (s ranks) highestName() Rank { // highest priority is the lowest number
	if s == 0 {
		return Nobody
	}
	return Rank(bits.TrailingZeros8(uint8(s)))
}
