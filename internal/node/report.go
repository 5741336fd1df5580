package node

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// What the machine reports, in words for people.

// reportLocked makes a log line. It is written once the mutex is free: whoever
// reads the log must not hold up the locks.
func (n *Node) reportLocked(level slog.Level, msg string, attrs ...any) {
	if !n.log.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(time.Now(), level, msg, 0)
	r.Add(attrs...)
	n.reports = append(n.reports, r)
}

// write writes log lines. What can't be written is lost, as usual.
func (n *Node) write(reports []slog.Record) {
	for _, r := range reports {
		_ = n.log.Handler().Handle(context.Background(), r)
	}
}

// roleChangedLocked is the one log line of a change of role.
func (n *Node) roleChangedLocked(a replica.RoleChanged) {
	n.since, n.reason = n.clock.wall(n.clock.now()), a.Why.String()
	n.feedRoleLocked(a)
	n.reportLocked(slog.LevelInfo, "role changed", "event", "role", "from", a.From.String(), "role", a.To.String(),
		"epoch", uint64(a.Position.Epoch), "seq", uint64(a.Position.Seq), "reason", a.Why.String())
}

// levels are those of facts that are more than news.
var levels = map[replica.Fact]slog.Level{
	replica.FactPeerUp: slog.LevelInfo, replica.FactPeerDown: slog.LevelWarn, replica.FactRefused: slog.LevelWarn,
	replica.FactWaking: slog.LevelWarn, replica.FactBehind: slog.LevelWarn, replica.FactGap: slog.LevelWarn,
	replica.FactHashDiffers: slog.LevelError, replica.FactTwoActives: slog.LevelWarn,
	replica.FactOtherActive: slog.LevelWarn, replica.FactBarred: slog.LevelError, replica.FactGateAlone: slog.LevelWarn,
}

// noteLocked logs a fact.
func (n *Node) noteLocked(a replica.Note) {
	n.feedFactLocked(a)
	attrs := []any{"event", a.Fact.String(), "epoch", uint64(a.Position.Epoch), "seq", uint64(a.Position.Seq)}
	if a.Peer != replica.Nobody {
		attrs = append(attrs, "peer", n.nameLocked(a.Peer))
	}
	if a.Text != "" {
		attrs = append(attrs, "detail", a.Text)
	}
	n.reportLocked(levels[a.Fact], "cluster: "+a.Fact.String(), attrs...)
}

func (n *Node) nameLocked(r replica.Rank) string {
	if n.cluster == nil || r < 0 || int(r) >= len(n.cluster.Machine.Names) {
		return ""
	}
	return n.cluster.Machine.Names[r]
}

// peerInfo is what a peer has said of itself when its link came up.
type peerInfo struct {
	software string
	native   string
	http     []string
}

func (n *Node) peerKnownLocked(a replica.PeerKnown) {
	h := a.Hello
	n.peers[a.Peer] = peerInfo{h.Software, h.Native, append([]string(nil), h.HTTP...)}
	if own := limitsOf(&n.cfg.Table); string(own) != string(h.Limits) {
		n.reportLocked(slog.LevelWarn, "limits differ: a failover to that node changes what is refused", "event", "limits", "peer", h.Name,
			"theirs", string(h.Limits), "ours", string(own))
	}
}

// refreshLocked brings what Active says up to date.
func (n *Node) refreshLocked() {
	next := n.pointerLocked()
	if was := n.active.Load(); was.Name != next.Name || was.Here != next.Here || was.Native != next.Native || !slices.Equal(was.HTTP, next.HTTP) {
		n.active.Store(&next)
	}
}

// pointerLocked says who is active. The one that only a third node hears may
// be out of this node's reach, but not of a client's: it has a name, and the
// native address that it gave when it was last heard.
func (n *Node) pointerLocked() ActiveNode {
	r, linked := n.machine.Pointer()
	switch {
	case n.left && r == n.self:
		return ActiveNode{}
	case r == n.self:
		return ActiveNode{Name: n.cfg.Name, Native: n.cfg.Native, HTTP: n.cfg.HTTP, Here: true}
	case r == replica.Nobody:
		return ActiveNode{}
	}
	a := ActiveNode{Name: n.nameLocked(r), Native: n.peers[r].native}
	if linked {
		a.HTTP = n.peers[r].http
	}
	return a
}

// seqLocked is the position in the event stream.
func (n *Node) positionLocked() (epoch locks.Token, seq uint64) {
	if n.cluster == nil {
		return n.epoch, n.alone
	}
	p := n.machine.Position()
	return locks.Token(p.Epoch), uint64(p.Seq)
}
