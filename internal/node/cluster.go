package node

import (
	"context"
	"log/slog"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// Cluster makes a node one of several.
type Cluster struct {
	// Machine has Rank, Names, Heartbeat, Suspicion, StartGrace, TakeBackDelay,
	// Preempt, Ack and LogBytes; the rest is set by New.
	Machine replica.Config

	// Log gets changes of role, hand-offs and the like. nil = none.
	Log *slog.Logger
}

// Links is where messages for peers go. Push carries out an action if it is one
// of links, and says whether it is; it never waits and never calls back.
type Links interface {
	Push(a replica.Action) bool
}

// Step takes in what the links tell.
func (n *Node) Step(in replica.Input) {}

// Connect gives the node its links, before Run.
func (n *Node) Connect(l Links) {}

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
	Rank   int
	Name   string
	Self   bool
	Alive  bool // heard within the suspicion time
	Role   Role // what it said last; 0 = never heard
	Native string
	HTTP   []string
	Epoch  locks.Token
	Seq    uint64
	Synced bool          // follows the active without a gap
	Behind uint64        // events that it is behind this node's position; only where both are of one epoch
	Lag    time.Duration // since when it has not had all that this node has; 0 = it has
	Since  time.Time     // of the role; zero = not known
	Reason string        // of the last change of role
	Refuse string        // why it and this node refuse each other; "" = they do not
}

// Members lists the cluster by rank, this node included.
func (n *Node) Members() []Member {
	st := n.Status()
	return []Member{{
		Name: st.Name, Self: true, Alive: true, Role: st.Role, Native: st.Native, HTTP: st.HTTP,
		Epoch: st.Epoch, Seq: st.Seq, Synced: true, Since: st.Since, Reason: st.Reason,
	}}
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
	if to != "" {
		return HandoffNoSuchNode
	}
	return HandoffNotSynced
}

// Leave hands over, if there is somebody to hand over to, and returns when
// every session was told where to go. Afterwards the node serves nothing. When
// ctx ends first, its cause is returned.
func (n *Node) Leave(ctx context.Context) error {
	return nil
}

// Failed yields why the node can't go on, if that comes to be: another process
// has its name, for instance.
func (n *Node) Failed() <-chan error { return n.failed }
