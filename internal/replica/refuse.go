package replica

import (
	"fmt"
	"slices"
	"time"
)

// judge says why a hello is refused, 0 if it is not.
func (m *Machine) judge(h *Hello) (Refusal, string) {
	c := &m.cfg
	if h.Incarnation == c.Incarnation {
		return RefusedSelf, fmt.Sprintf("an address of the peers list leads back to node %q itself", c.Names[m.self])
	}
	if h.Major != c.Major || max(h.Minor, c.Minor)-min(h.Minor, c.Minor) > 1 {
		return RefusedVersion, fmt.Sprintf("node %q speaks peer version %d.%d and node %q %d.%d: one minor version apart is the most",
			h.Name, h.Major, h.Minor, c.Names[m.self], c.Major, c.Minor)
	}
	if h.Rank < 0 || int(h.Rank) >= len(h.Names) || h.Names[h.Rank] != h.Name {
		return RefusedUnlisted, fmt.Sprintf("node %q does not stand in its own peers list at its rank %d", h.Name, h.Rank)
	}
	if !slices.Contains(c.Names, h.Name) {
		return RefusedUnlisted, fmt.Sprintf("node %q is not in the peers list of node %q: add it there at the end", h.Name, c.Names[m.self])
	}
	for i, name := range h.Names {
		if j := slices.Index(c.Names, name); j >= 0 && j != i {
			return RefusedRank, fmt.Sprintf("node %q has rank %d in the peers list of node %q and %d in that of node %q: make the lists alike",
				name, i, h.Name, j, c.Names[m.self])
		}
	}
	apart := time.Duration(m.wall()-h.Wall) * time.Millisecond // saturation does not matter: see the bound
	if d := m.wall() - h.Wall; d > clockBound.Milliseconds() || d < -clockBound.Milliseconds() {
		return RefusedClock, fmt.Sprintf("the clocks of node %q and node %q are %v apart: an hour is the most; set them right",
			c.Names[m.self], h.Name, apart.Abs().Round(time.Second))
	}
	return 0, ""
}

// refuse closes a link with a reason that both sides log.
func (m *Machine) refuse(l *link, code Refusal, text string) {
	m.send(l.id, Control, &Refuse{From: m.self, Code: code, Text: truncate(text, maxTextBytes)})
	m.countRefusal(l.peer, code, code.String()+": "+text)
	m.closeLink(l.id, code.String())
}

func truncate(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// wasRefused: the other side closes the link. A newcomer under a name that is
// taken ends.
func (m *Machine) wasRefused(l *link, msg *Refuse) {
	r := l.peer
	if r == Nobody && msg.From != m.self && int(msg.From) < len(m.cfg.Names) {
		r = msg.From
	}
	m.countRefusal(r, msg.Code, "by the peer: "+msg.Code.String()+": "+msg.Text)
	carried := r != Nobody && m.peers[r].link == l.id && m.peers[r].everHeard && m.peers[r].heard >= m.peers[r].since
	m.closeLink(l.id, "refused by the peer")
	if msg.Code == RefusedDuplicate && !carried { // on a link that carried something this process was known already
		m.exit(true, msg.Text)
	}
}

// metNamesake: two processes with one name, on a link to each other. Both
// answer, so the newcomer goes: the one that started later.
func (m *Machine) metNamesake(l *link, h *Hello) {
	text := m.duplicateText(h)
	older := m.now.Sub(m.started) > h.Uptime || m.now.Sub(m.started) == h.Uptime && m.cfg.Incarnation < h.Incarnation
	if older {
		m.refuse(l, RefusedDuplicate, text)
		return
	}
	m.closeLink(l.id, RefusedDuplicate.String())
	m.exit(true, text)
}

// countRefusal notes a refusal, once as long as the redials find nothing else.
func (m *Machine) countRefusal(r Rank, code Refusal, text string) {
	if r == Nobody {
		if text != m.stranger.text || m.now.Sub(m.stranger.at) >= strangerPause {
			m.stranger.text, m.stranger.at = text, m.now
			m.note(FactRefused, r, text)
		}
		return
	}
	p := &m.peers[r]
	if !m.refuses(r) || p.refused != code {
		m.note(FactRefused, r, text)
	}
	p.refused, p.refusedAt = code, m.now
}

// strangerPause is how long the same refusal of a node that is none of ours is not repeated.
const strangerPause = time.Minute

// refuses says whether links to r are refused, by either side: each redial
// says so anew, so what is old does not count.
func (m *Machine) refuses(r Rank) bool {
	p := &m.peers[r]
	return p.refused != 0 && m.now.Sub(p.refusedAt) < 2*m.cfg.Suspicion
}

// barred says whether at least as many peers refuse this node as accept it,
// itself counted among those. A node with a list of its own must not make a
// cluster of its own.
func (m *Machine) barred() bool {
	refusing, accepting := 0, 1
	m.each(func(r Rank, _ *peer) {
		switch {
		case m.alive(r):
			accepting++
		case m.refuses(r):
			refusing++
		}
	})
	return refusing >= accepting
}
