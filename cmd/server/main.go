// Command holdfastd is the Holdfast daemon: one node, configured by environment
// variables (docs/configuration.md) and stopped by a signal.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker (see the Makefile).
var version = "v0.1.0-dev"

// Exit codes. A supervisor need not restart after exitUsage: nothing would change.
const (
	exitOK     = 0
	exitFailed = 1 // could not start, or did not stop in order
	exitUsage  = 2 // a mistake in the configuration or on the command line
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit code. The end of ctx stops it like a first signal.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command, err := parseArgs(args)
	if err != nil {
		fmt.Fprintf(stderr, "holdfastd: %v; see holdfastd --help\n", err)
		return exitUsage
	}
	switch command {
	case "help":
		fmt.Fprint(stdout, usage)
		return exitOK
	case "version":
		fmt.Fprintln(stdout, versionLine())
		return exitOK
	}

	s := loadSettings()
	switch {
	case command == "check-config":
		s.printSettings(stdout)
	case command == "healthcheck":
		return healthcheck(ctx, s, stdout, stderr)
	}
	if len(s.problems) > 0 {
		s.printProblems(stderr)
		return exitUsage
	}
	if command == "check-config" {
		return exitOK
	}
	return serve(ctx, s, stderr)
}

// healthcheck has only two answers: what calls it knows no third.
func healthcheck(ctx context.Context, s *settings, stdout, stderr io.Writer) int {
	if !s.sound("HOLDFAST_HTTP_ADDR") {
		s.printProblems(stderr)
		return exitFailed
	}
	if err := checkHealth(ctx, s.HTTPAddr); err != nil {
		fmt.Fprintf(stderr, "holdfastd healthcheck: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(stdout, "ready")
	return exitOK
}

// serve runs a node until it is told to stop.
func serve(ctx context.Context, s *settings, stderr io.Writer) int {
	// Before anything opens: a signal that comes during the start must find us listening.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	level := &slog.LevelVar{}
	level.Set(levelOf(s.LogLevel))
	log := newLog(stderr, s.LogFormat, level, s.Node)

	d, err := build(s, log)
	if err != nil {
		log.Error("cannot start", "component", "server", "err", err)
		return exitFailed
	}
	d.level = level
	d.start()
	failure := d.wait(ctx, signals)
	if err := d.stop(signals); err != nil {
		log.Error("stopped out of order", "component", "server", "err", err)
		return exitFailed
	}
	if failure != nil {
		return exitFailed
	}
	log.Info("stopped", "component", "server")
	return exitOK
}
