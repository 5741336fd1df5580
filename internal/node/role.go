package node

import (
	"fmt"
	"log/slog"
	"strings"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// Role is what a node is in its cluster.
type Role uint8

const (
	Active   Role = iota + 1 // serves
	Standby                  // follows the active's state
	Joining                  // not in step yet
	Stopping                 // serves until it has handed over, but wants no new clients
)

func (r Role) String() string {
	switch r {
	case Active:
		return "active"
	case Standby:
		return "standby"
	case Joining:
		return "joining"
	case Stopping:
		return "stopping"
	}
	return "unknown"
}

// roleOf is how a machine's role is called towards people.
func roleOf(r replica.Role) Role {
	switch r {
	case replica.Active:
		return Active
	case replica.Standby:
		return Standby
	case replica.Joining:
		return Joining
	}
	return 0
}

// roleLocked is what the node says that it is.
func (n *Node) roleLocked() Role {
	if n.stopping {
		return Stopping
	}
	return roleOf(n.machine.Role())
}

// machine is the configuration of the machine.
func (c *Config) machine(clock clock) replica.Config {
	m := replica.DefaultConfig()
	m.Names, m.LogBytes = []string{c.Name}, 1<<10
	if m.Names[0] == "" {
		m.Names[0] = "node"
	}
	if c.Cluster != nil {
		m = c.Cluster.Machine
	}
	for m.Incarnation == 0 {
		m.Incarnation = replica.Incarnation(c.Random())
	}
	m.Major, m.Minor = peerVersion(c.Version)
	m.Software, m.Native, m.HTTP = c.Version, c.Native, c.HTTP
	m.Limits = limitsOf(&c.Table)
	m.WallAtZero = clock.Zero.UnixMilli()
	m.Highest = replica.Token(c.Mark)
	return m
}

// peerVersion reads vMAJOR.MINOR; what is no version is 0.0.
func peerVersion(version string) (major, minor uint16) {
	fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor) // what it can't read stays 0
	return major, minor
}

// limitsOf says what nodes of a cluster should have in common, in words: a
// failover must not change what is refused.
func limitsOf(t *locks.Config) []byte {
	return fmt.Appendf(nil, "default_lease=%v max_lease=%v reattach_grace=%v max_keys=%d max_key_bytes=%d max_waiters=%d max_waiters_per_key=%d",
		t.DefaultLease, t.MaxLease, t.ReattachGrace, t.MaxKeys, t.MaxKeyBytes, t.MaxWaiters, t.MaxWaitersPerKey)
}

func (c *Config) log() *slog.Logger {
	if c.Cluster == nil || c.Cluster.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Cluster.Log
}
