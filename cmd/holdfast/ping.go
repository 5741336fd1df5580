package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/session"
	"holdfast/wire"
)

const pingTimeout = 2 * time.Second

// pingResult is one address. Round trips are in microseconds.
type pingResult struct {
	Addr     string  `json:"addr"`
	Node     string  `json:"node,omitempty"`
	Role     string  `json:"role,omitempty"`
	Software string  `json:"software,omitempty"`
	Active   string  `json:"active,omitempty"` // native address of the active, as this node knows it
	Sent     int     `json:"sent"`
	Answered int     `json:"answered"`
	Min      float64 `json:"min_us"`
	Avg      float64 `json:"avg_us"`
	Max      float64 `json:"max_us"`
	Error    string  `json:"error,omitempty"`

	err   error
	trips []float64 // microseconds
}

func newPing(a *app) *cobra.Command {
	var count int
	var interval time.Duration
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "ping",
		Short: "Ask every node who it is and how fast it answers",
		Long: `Connect to each address, and print the node's name, its role, its software and
the round trips of COUNT pings (after the connection is open).

Exit codes: 0 all answered; 1 one can't be reached or did not answer; 125 usage.`,
		Example: `  holdfast ping
  holdfast ping --addr 10.0.0.1,10.0.0.2,10.0.0.3 -c 10 -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 || interval < 0 {
				return usageError(cmd, fmt.Errorf("--count: %d; at least 1. --interval: %v; at least 0", count, interval))
			}
			t, err := a.target("")
			if err != nil {
				return err
			}
			results := pingAll(cmd.Context(), t, count, interval)
			if output == outputJSON {
				err = writeJSON(a.stdout, results)
			} else {
				err = writePings(a.stdout, results)
			}
			if err != nil {
				return err
			}
			return a.judgePings(results)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&count, "count", "c", 3, "pings for each address")
	flags.DurationVarP(&interval, "interval", "i", 200*time.Millisecond, "time between pings")
	output.register(cmd)
	return cmd
}

// judgePings reports what failed, one line an address.
func (a *app) judgePings(results []*pingResult) error {
	code := exitOK
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(a.stderr, "holdfast: %s: %v\n", r.Addr, withAdvice(r.err))
			code = exitUnreachable
		}
	}
	if code == exitOK {
		return nil
	}
	return exitWith(code, nil)
}

// pingAll pings the addresses at the same time; one that is dead delays no other.
func pingAll(ctx context.Context, t *target, count int, interval time.Duration) []*pingResult {
	results := make([]*pingResult, len(t.addrs))
	var wg sync.WaitGroup
	for i, addr := range t.addrs {
		wg.Go(func() {
			r := &pingResult{Addr: addr}
			if r.err = r.ping(ctx, t.session, count, interval); r.err != nil {
				r.Error = r.err.Error()
			}
			r.sum()
			results[i] = r
		})
	}
	wg.Wait()
	return results
}

func (r *pingResult) ping(ctx context.Context, cfg session.Config, count int, interval time.Duration) error {
	c, err := session.Dial(ctx, r.Addr, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	w := &c.Welcome
	r.Node, r.Role, r.Software, r.Active = w.Node, w.Role.String(), w.Software, w.Active
	for r.Sent < count {
		if r.Sent > 0 {
			select {
			case <-time.After(interval):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r.Sent++
		trip, err := pingOnce(ctx, c, uint32(r.Sent))
		if err != nil {
			return fmt.Errorf("ping %d: %w", r.Sent, err)
		}
		r.trips = append(r.trips, float64(trip.Nanoseconds())/1e3)
	}
	return nil
}

func pingOnce(ctx context.Context, c *session.Conn, id uint32) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	defer c.Guard(ctx)()
	start := time.Now()
	c.Queue(&wire.Request{Op: wire.OpPing, ID: id})
	var reply wire.Reply
	for {
		if err := c.Next(&reply); err != nil {
			return 0, err
		}
		if reply.Op == wire.OpPing && reply.ID == id {
			return time.Since(start), nil
		}
	}
}

func (r *pingResult) sum() {
	r.Answered = len(r.trips)
	if r.Answered == 0 {
		return
	}
	r.Min = r.trips[0]
	var total float64
	for _, t := range r.trips {
		r.Min, r.Max, total = min(r.Min, t), max(r.Max, t), total+t
	}
	r.Avg = total / float64(r.Answered)
}

func writePings(w io.Writer, results []*pingResult) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ADDRESS\tNODE\tROLE\tSOFTWARE\tANSWERED\tMIN\tAVG\tMAX")
	for _, r := range results {
		if r.Node == "" {
			fmt.Fprintf(table, "%s\t-\tunreachable\t-\t0/%d\t-\t-\t-\n", r.Addr, r.Sent)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\n", r.Addr, r.Node, r.Role, r.Software,
			r.Answered, r.Sent, microseconds(r.Min), microseconds(r.Avg), microseconds(r.Max))
	}
	return table.Flush()
}

// microseconds prints us with three digits or so.
func microseconds(us float64) string {
	switch {
	case us == 0:
		return "-"
	case us < 1e3:
		return fmt.Sprintf("%.0fµs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1fms", us/1e3)
	}
	return fmt.Sprintf("%.2fs", us/1e6)
}
