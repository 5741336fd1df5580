package link

import (
	"errors"
	"sync"
	"time"

	"holdfast/internal/replica"
)

const (
	lineEvery   = 30 * time.Second // the same line again
	lineAtLeast = time.Second      // any line
)

// line is a kind of log line that others can provoke.
type line uint8

const (
	lineDial line = iota
	lineAccept
	lineUp
	lineDown
	numLines
)

// quiet limits repeated log lines, for each kind and peer on its own.
type quiet struct {
	mu    sync.Mutex // guards what follows
	slots [numLines][replica.MaxNodes + 1]struct {
		at      time.Time
		text    string
		skipped int
	}
}

// allow says whether a line is to be written, and how many were not since the last.
func (q *quiet) allow(now time.Time, kind line, r replica.Rank, text string) (skipped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.slots[kind][r-replica.Nobody]
	since := now.Sub(s.at)
	if !s.at.IsZero() && (since < lineAtLeast || since < lineEvery && text == s.text) {
		s.skipped++
		return 0, false
	}
	skipped = s.skipped
	s.at, s.text, s.skipped = now, text, 0
	return skipped, true
}

// announceUp writes down that a link stands: after one that did not stay, perhaps
// only once this one does. The caller calls stop when the link has ended.
func (t *Transport) announceUp(c *conn) (stop func() bool) {
	skipped, ok := 0, true
	if t.flaps[c.rank-replica.Nobody].Load() {
		skipped, ok = t.lines.allow(time.Now(), lineUp, c.rank, "")
	}
	tell := func() {
		t.log.Info("link up", "event", "link-up", "peer", c.name, "link", c.id, "dialled", c.dialled, "remote", c.remote(), "skipped", skipped)
	}
	if !ok {
		return time.AfterFunc(steady, tell).Stop
	}
	tell()
	return func() bool { return true }
}

// announceDown writes down that a link has ended. Links that are given up as soon
// as they stand come again and again, where the nodes can prove the secret to
// each other and the machines do not agree: they are told of once in a while.
func (t *Transport) announceDown(c *conn) {
	lasted, skipped, ok := time.Since(c.since), 0, true
	short := lasted < steady
	t.flaps[c.rank-replica.Nobody].Store(short)
	if short {
		skipped, ok = t.lines.allow(time.Now(), lineDown, c.rank, c.out.cause().Error())
	}
	if ok {
		t.log.Info("link down", "event", "link-down", "peer", c.name, "link", c.id, "lasted", lasted, "err", c.out.cause(), "skipped", skipped)
	}
}

// report writes down that a connection to or from a peer, whose name is only
// claimed, became no link: refusals to be seen, and not each time the same one,
// for both sides come back soon; what broke only for who looks closely.
func (t *Transport) report(kind line, r replica.Rank, name, remote string, err error) {
	text, event := "peer refused", "peer-refused"
	no, ok := errors.AsType[*refusal](err)
	if !ok {
		t.log.Debug("no link", "event", "no-link", "peer", name, "remote", remote, "err", err)
		return
	}
	if no.byPeer {
		text, event = "refused by the peer", "refused-by-peer"
	}
	if skipped, ok := t.lines.allow(time.Now(), kind, r, no.text); ok {
		t.log.Warn(text, "event", event, "peer", name, "remote", remote, "err", no.text, "skipped", skipped)
	}
}
