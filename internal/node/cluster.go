package node

import (
	"context"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// ActiveNode is the node that serves, as far as this one knows.
type ActiveNode struct {
	Name   string   // "" = none is known
	Native string   // its advertised native address
	HTTP   []string // its advertised HTTP addresses; empty where no link to it stands
	Here   bool     // it is this node
}

// Active says where requests should go. It takes no lock: the answer is that
// of the last change.
func (n *Node) Active() ActiveNode { return *n.active.Load() }

// Member is one node of the cluster, as this one sees it.
type Member struct {
	Rank    int
	Name    string
	Self    bool
	Alive   bool // heard within the suspicion time
	Role    Role // what it said last; 0 = never heard
	Version string
	Native  string
	HTTP    []string
	Epoch   locks.Token
	Seq     uint64
	Synced  bool          // follows the active without a gap
	Behind  uint64        // events that it is behind this node's position; only where both are of one epoch
	Lag     time.Duration // since when it has not had all that this node has; 0 = it has
	Since   time.Time     // of the role; of another node, when this one heard of it; zero = not known
	Reason  string        // of the last change of role
	Refused string        // why it and this node refuse each other; "" = they do not
}

// Members lists the cluster by rank, this node included.
func (n *Node) Members() []Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := n.machine.Status()
	epoch, seq := n.positionLocked()
	self := Member{
		Rank: int(n.self), Name: n.cfg.Name, Self: true, Alive: true, Role: n.roleLocked(), Version: n.cfg.Version,
		Native: n.cfg.Native, HTTP: n.cfg.HTTP, Epoch: epoch, Seq: seq, Synced: st.Synced, Since: n.since, Reason: n.reason,
	}
	var all []Member
	for _, p := range st.Peers {
		if p.Rank > n.self && len(all) == int(n.self) {
			all = append(all, self)
		}
		all = append(all, n.memberLocked(p, st.Position))
	}
	if len(all) == int(n.self) {
		all = append(all, self)
	}
	return all
}

func (n *Node) memberLocked(p replica.PeerStatus, own replica.Position) Member {
	info := &n.peers[p.Rank]
	m := Member{
		Rank: int(p.Rank), Name: n.nameLocked(p.Rank), Alive: p.Alive, Role: roleOf(p.Role), Version: info.software,
		Native: info.native, HTTP: info.http, Epoch: locks.Token(p.Position.Epoch), Seq: uint64(p.Position.Seq),
		Synced: p.Synced, Lag: p.Lag, Refused: p.Refused,
	}
	if p.Role != 0 {
		m.Since = n.clock.wall(locks.Time(p.Since))
	}
	if p.Position.Epoch == own.Epoch && p.Position.Less(own) {
		m.Behind = uint64(own.Seq - p.Position.Seq)
	}
	return m
}

// HandoffResult says what became of an operator's wish.
type HandoffResult uint8

const (
	HandoffBegun      HandoffResult = iota + 1 // it has begun; the roles will tell
	HandoffNotActive                           // this node is not the active
	HandoffNotSynced                           // that node, or any other, is not in step with this one
	HandoffInProgress                          // one is under way, or the service is frozen for something else
	HandoffNoSuchNode                          // not in the peers list, or this node itself
)

// Handoff asks the active to hand over to the named node, or to the next where
// to is "".
func (n *Node) Handoff(to string) HandoffResult {
	now := n.lock()
	defer n.unlock(nil, nil)
	rank := replica.Nobody
	if to != "" {
		if rank = n.rankLocked(to); rank == replica.Nobody {
			return HandoffNoSuchNode
		}
	}
	st := n.machine.Status()
	switch {
	case st.Role != replica.Active || n.left:
		return HandoffNotActive
	case st.Frozen || st.HandingOver || n.stopping:
		return HandoffInProgress
	}
	for _, p := range st.Peers {
		if p.Synced && p.Alive && (rank == replica.Nobody || rank == p.Rank) {
			n.stepLocked(now, replica.HandoffRequested{To: rank})
			n.refreshLocked()
			return HandoffBegun
		}
	}
	return HandoffNotSynced
}

// rankLocked finds another node of the list by its name.
func (n *Node) rankLocked(name string) replica.Rank {
	if n.cluster != nil {
		for i, one := range n.cluster.Machine.Names {
			if one == name && replica.Rank(i) != n.self {
				return replica.Rank(i)
			}
		}
	}
	return replica.Nobody
}

// Leave hands over, if there is somebody to hand over to, and returns when
// every session was told where to go. Afterwards the node serves nothing. When
// ctx ends first, its cause is returned. Run must be running.
func (n *Node) Leave(ctx context.Context) error {
	n.BeginLeave()
	select {
	case <-n.exited:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// BeginLeave is Leave for callers that must not wait: Exited says when it is done.
func (n *Node) BeginLeave() {
	now := n.lock()
	n.stopping = true
	n.stepLocked(now, replica.StopRequested{})
	n.refreshLocked()
	n.unlock(nil, nil)
}

// Exited says whether the node has nothing more to do: it has left, or failed.
func (n *Node) Exited() bool {
	select {
	case <-n.exited:
		return true
	default:
		return false
	}
}

// Failed yields why the node can't go on, if that comes to be: another process
// has its name, for instance.
func (n *Node) Failed() <-chan error { return n.failed }

// Inspect calls fn with the machine and the table, under the node's mutex. It is
// for tests, which check their invariants between two steps; fn must not change anything.
func (n *Node) Inspect(fn func(*replica.Machine, *locks.Table)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fn(n.machine, n.table)
}
