package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepeatedLinesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := newLog(&out, "text", &slog.LevelVar{}, "n1")
		for i := range 100 {
			log.With("component", "web").Warn("authentication failed", "try", i)
		}
		log.Warn("something else")
		if got := strings.Count(out.String(), "authentication failed"); got != linesPerWindow {
			t.Errorf("%d lines, want %d", got, linesPerWindow)
		}
		if !strings.Contains(out.String(), "something else") {
			t.Error("another line was held back too")
		}

		out.Reset()
		time.Sleep(window)
		log.Warn("authentication failed")
		if want := fmt.Sprintf("skipped=%d", 100-linesPerWindow); !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %s", out.String(), want)
		}
		out.Reset()
		log.Warn("authentication failed")
		if strings.Contains(out.String(), "skipped") {
			t.Errorf("told twice: %q", out.String())
		}
	})
}

// Where the locks are is told each time, however often it changes.
func TestChangesOfRoleAreNotLimited(t *testing.T) {
	var out bytes.Buffer
	log := newLog(&out, "text", &slog.LevelVar{}, "n1")
	for range 100 {
		log.Info("role changed", "event", "role", "role", "standby")
	}
	if got := strings.Count(out.String(), "role changed"); got != 100 {
		t.Errorf("%d lines, want 100", got)
	}
}

func TestDebugIsNotLimited(t *testing.T) {
	var out bytes.Buffer
	level := &slog.LevelVar{}
	log := newLog(&out, "json", level, "n1")
	log.Debug("granted")
	level.Set(slog.LevelDebug)
	for range 100 {
		log.Debug("granted")
	}
	if got := strings.Count(out.String(), "granted"); got != 100 {
		t.Errorf("%d lines, want 100", got)
	}
}

// C-77: one record is one line, whatever a client puts into a key.
func TestHostileTextStaysInItsLine(t *testing.T) {
	for _, format := range []choice{"text", "json"} {
		var out bytes.Buffer
		newLog(&out, format, &slog.LevelVar{}, "n1").Info("expired", "key", "job\r\nlevel=ERROR msg=forged\x1b[2J")
		if strings.Count(out.String(), "\n") != 1 || strings.ContainsAny(out.String(), "\r\x1b") {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}

func TestLineMemoryIsBounded(t *testing.T) {
	l := &lines{}
	for i := range 3 * maxLines {
		l.pass(line{slog.LevelInfo, fmt.Sprint(i)}, time.Time{})
	}
	if len(l.seen) > maxLines {
		t.Errorf("%d lines are remembered, more than %d", len(l.seen), maxLines)
	}
}

func TestKeysOfALine(t *testing.T) {
	var out bytes.Buffer
	log := newLog(&out, "text", &slog.LevelVar{}, "n1").With("component", "web")
	r := slog.NewRecord(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), slog.LevelInfo, "request refused", 0)
	r.AddAttrs(slog.String("event", "limit"))
	if err := log.Handler().Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	const want = `time=2026-05-04T03:02:01.000Z level=INFO msg="request refused" node=n1 component=web event=limit` + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
