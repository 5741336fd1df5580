package native

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// linesPerSecond bounds the log lines of one message: what every stranger on
// the network can bring about must not fill a disk.
const linesPerSecond = 10

// limiter logs, and leaves out lines that repeat too often.
type limiter struct {
	to *slog.Logger

	mu    sync.Mutex // guards what follows
	lines map[string]*lineCount
}

type lineCount struct {
	since   time.Time
	n       int // since then
	omitted int
}

func newLimiter(to *slog.Logger) *limiter {
	return &limiter{to: to, lines: make(map[string]*lineCount)}
}

// limited logs a line, if there are not too many of that message. The messages
// are constants, so their number is bounded.
func (l *limiter) limited(level slog.Level, msg string, args ...any) {
	if !l.to.Enabled(context.Background(), level) {
		return
	}
	omitted, ok := l.allow(msg)
	if !ok {
		return
	}
	if omitted > 0 {
		args = append(args, "omitted_before", omitted)
	}
	l.to.Log(context.Background(), level, msg, args...)
}

func (l *limiter) allow(msg string) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	c := l.lines[msg]
	if c == nil {
		c = &lineCount{since: now}
		l.lines[msg] = c
	}
	if now.Sub(c.since) >= time.Second {
		c.since, c.n = now, 0
	}
	if c.n >= linesPerSecond {
		c.omitted++
		return 0, false
	}
	c.n++
	omitted, c.omitted = c.omitted, 0
	return omitted, true
}
