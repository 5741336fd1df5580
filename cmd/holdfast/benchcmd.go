package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/bench"
)

// benchFlags hold what the user gave; a size that was not given is the
// workload's own default.
type benchFlags struct {
	workloads   string
	connections int
	depth       int
	keys        int
	duration    time.Duration
	warmup      time.Duration
	tickets     bool
	leave       bool
	progress    bool
	output      outputFormat
}

func newBench(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Load a server and measure how it answers",
		Long: `Load one server with lock requests, and print throughput and latency.

The address must be given with --addr: neither HOLDFAST_ADDRS nor the default
nor a redirect is followed, so that load never goes where it was not meant to.
Keys are random ones that nobody else uses; they are released at the end, also
after Ctrl-C, which prints what was measured until then.

Workloads (an operation; default connections and depth):
  closed     each connection acquires and releases keys of its own, with one
             request outstanding (acquire and release; 50, 1)
  pipelined  the same with DEPTH requests outstanding (the same; 8, 128)
  handoff    CONNECTIONS clients wait in line for one key; each releases as soon
             as it is granted (a hand-off; 100, 1). The order of the grants is
             checked.
  held       acquires KEYS keys and releases none while it measures (an acquire;
             8, 128; 1000000 keys)

Latency is that of one request: half an operation of closed and pipelined; in
handoff from the release being sent to the next grant being read. Client and
server on one machine share its processors.

Exit codes: 0 done; 1 requests failed, or grants came out of order; 125 the run
could not take place; 130 interrupted.`,
		Example: `  holdfast bench --addr 127.0.0.1:7620
  holdfast bench --addr 127.0.0.1:7620 -w pipelined -c 8 -d 128 -t 30s -o json
  holdfast bench --addr 127.0.0.1:7620 -w held --keys 100000 --leave`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.bench(cmd, &f) },
	}
	f.register(cmd)
	return cmd
}

func (f *benchFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.workloads, "workload", "w", "closed,pipelined,handoff", "`workloads` to run, separated by commas")
	flags.IntVarP(&f.connections, "connections", "c", 0, "connections; in handoff the waiters (default by workload)")
	flags.IntVarP(&f.depth, "depth", "d", 0, "requests outstanding on each connection of pipelined and held (default 128)")
	flags.IntVar(&f.keys, "keys", 0, "distinct keys of closed, pipelined and held (default 65536; held 1000000)")
	flags.DurationVarP(&f.duration, "duration", "t", 10*time.Second, "measured time of each workload; held ends with its last key")
	flags.DurationVar(&f.warmup, "warmup", time.Second, "load before the measured time of closed and pipelined")
	flags.BoolVar(&f.tickets, "tickets", false, "send a ticket with every acquire, as the official clients do")
	flags.BoolVar(&f.leave, "leave", false, "held: leave the keys to their lease of 10m (or the server's maximum)")
	flags.BoolVar(&f.progress, "progress", false, "print progress even if standard error is no terminal")
	f.output.register(cmd)
}

// configs makes one run for each workload asked for.
func (f *benchFlags) configs(t *target) ([]bench.Config, error) {
	var configs []bench.Config
	for name := range strings.SplitSeq(f.workloads, ",") {
		w := bench.Workload(strings.TrimSpace(name))
		if !slices.Contains(bench.Workloads, w) {
			return nil, fmt.Errorf("--workload %q: one or more of %v", name, bench.Workloads)
		}
		c := bench.Defaults(w)
		c.Addr, c.Session = t.addrs[0], t.session
		c.Duration, c.Tickets, c.Leave = f.duration, f.tickets, f.leave
		override(&c.Connections, f.connections)
		if w == bench.Closed || w == bench.Pipelined {
			c.Warmup = f.warmup
		}
		if w == bench.Pipelined || w == bench.Held {
			override(&c.Depth, f.depth)
		}
		if w != bench.Handoff {
			override(&c.Keys, f.keys)
		}
		if err := c.Validate(); err != nil {
			return nil, err
		}
		configs = append(configs, c)
	}
	return configs, nil
}

func override(size *int, given int) {
	if given != 0 {
		*size = given
	}
}

func (a *app) bench(cmd *cobra.Command, f *benchFlags) error {
	if a.conn.addrs == "" {
		return usageError(cmd, errors.New("name the server to load with --addr"))
	}
	t, err := a.target("")
	if err != nil {
		return err
	}
	if len(t.addrs) != 1 {
		return usageError(cmd, fmt.Errorf("--addr: %d addresses; a benchmark loads one", len(t.addrs)))
	}
	configs, err := f.configs(t)
	if err != nil {
		return usageError(cmd, err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return a.runBench(ctx, configs, newBenchReport(a, f))
}

func (a *app) runBench(ctx context.Context, configs []bench.Config, report benchReport) error {
	failed := false
	var results []*bench.Result
	for _, c := range configs {
		c.OnProgress = report.progress
		result, err := bench.Run(ctx, c)
		report.clear()
		if err != nil {
			return benchError(ctx, c.Addr, err)
		}
		results = append(results, result)
		report.add(result)
		failed = failed || result.Errors != nil || result.Order.Broken()
		if ctx.Err() != nil {
			break
		}
	}
	if err := report.close(results); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return exitWith(exitSignal+int(syscall.SIGINT), nil)
	case failed:
		return exitWith(exitUnreachable, nil)
	}
	return nil
}

func benchError(ctx context.Context, addr string, err error) error {
	if ctx.Err() != nil {
		return exitWith(exitSignal+int(syscall.SIGINT), errors.New("interrupted before anything was measured"))
	}
	return fmt.Errorf("%s: %w", addr, withAdvice(err))
}
