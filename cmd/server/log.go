package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// newLog makes the log of the daemon. level can be changed while it is in use.
func newLog(w io.Writer, format choice, level *slog.LevelVar, node nodeName) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, options)
	if format == "json" {
		h = slog.NewJSONHandler(w, options)
	}
	return slog.New(&limited{Handler: h, lines: &lines{}}).With("node", string(node))
}

func levelOf(c choice) slog.Level {
	return map[choice]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[c]
}

const (
	linesPerWindow = 20
	window         = 10 * time.Second
)

// limited passes on at most linesPerWindow lines with the same level and message in each window and counts the others, so that no
// client can fill the disk. The next line that passes tells how many did not. Debug is not limited: who asks for
// every grant gets every grant.
type limited struct {
	slog.Handler
	lines *lines // shared by all loggers derived from one
}

func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && !isRoleChange(r) {
		skipped, pass := l.lines.pass(line{r.Level, r.Message}, r.Time)
		if !pass {
			return nil
		}
		if skipped > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("skipped", skipped))
		}
	}
	return l.Handler.Handle(ctx, r)
}

// isRoleChange says whether a line tells of a change of role. Each of those is told: they say where the locks are, and no
// client can bring them about.
func isRoleChange(r slog.Record) (is bool) {
	r.Attrs(func(a slog.Attr) bool {
		is = a.Key == "event" && a.Value.String() == "role"
		return !is
	})
	return is
}

func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.lines}
}

func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.lines}
}

// line is what makes two log lines the same. Messages are constants of the program, so there are few.
type line struct {
	level slog.Level
	msg   string
}

type lines struct {
	mu   sync.Mutex // guards what follows
	seen map[line]*tally
}

type tally struct {
	since   time.Time // start of the window
	passed  int
	skipped int
}

// maxLines bounds what is remembered, should a message ever be made of what clients send.
const maxLines = 1000

func (l *lines) pass(key line, now time.Time) (skipped int, pass bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.seen[key]
	if t == nil {
		if l.seen == nil || len(l.seen) >= maxLines {
			l.seen = map[line]*tally{}
		}
		t = &tally{since: now}
		l.seen[key] = t
	}
	if now.Sub(t.since) >= window {
		skipped = t.skipped
		*t = tally{since: now}
	}
	if t.passed >= linesPerWindow {
		t.skipped++
		return 0, false
	}
	t.passed++
	return skipped, true
}
