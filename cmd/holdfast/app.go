package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// app is what the commands share: the surroundings of one invocation and the
// flags that all commands know.
type app struct {
	environ        []string
	stdout, stderr io.Writer

	conn    connFlags
	quiet   bool
	verbose bool
	level   slog.LevelVar // of logger
}

func newApp(environ []string, stdout, stderr io.Writer) *app {
	a := &app{environ: environ, stdout: stdout, stderr: stderr}
	a.level.Set(slog.LevelDebug)
	return a
}

// getenv returns "" for a variable that is unset; empty means unset everywhere
// in Holdfast.
func (a *app) getenv(name string) string {
	for _, entry := range a.environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// warn tells the user something that does not end the command.
func (a *app) warn(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, "holdfast: "+format+"\n", args...)
	}
}

// logger is for package client. What matters is reported by the commands
// themselves, so it is silent unless -v is given.
func (a *app) logger() *slog.Logger {
	if !a.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: &a.level}))
}

// exit reports err and returns the exit code that it stands for.
func (a *app) exit(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitFailure
	var coded *exitError
	if errors.As(err, &coded) {
		code = coded.code
		// That a lock is taken is no error: a job that starts often must be
		// able to end without a word.
		if coded.err == nil || code == exitNotAcquired && a.quiet {
			return code
		}
	}
	fmt.Fprintf(a.stderr, "holdfast: %v\n", err)
	return code
}
