package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/bench"
)

// benchReport prints results as they come, or all as one JSON document.
type benchReport struct {
	out, progressOut io.Writer // progressOut is nil for none
	json             bool
	overwrite        bool // the progress line is on a terminal: write it over and over
	last             *bench.Progress
	header           *bool
}

const benchColumns = "%-10s %6s %6s %12s %8s %8s %8s %8s %8s %8s\n"

func newBenchReport(a *app, f *benchFlags) benchReport {
	terminal := isTerminal(a.stderr)
	r := benchReport{out: a.stdout, json: f.output == outputJSON, overwrite: terminal, last: &bench.Progress{}, header: new(bool)}
	if (terminal || f.progress) && !a.quiet {
		r.progressOut = a.stderr
	}
	return r
}

func (r benchReport) progress(p bench.Progress) {
	if r.progressOut == nil {
		return
	}
	if p.Workload != r.last.Workload || p.Elapsed < r.last.Elapsed {
		*r.last = bench.Progress{Workload: p.Workload}
	}
	rate := float64(p.Operations-r.last.Operations) / (p.Elapsed - r.last.Elapsed).Seconds()
	*r.last = p
	line := fmt.Sprintf("%s %3.0fs  %10d operations  %10.0f/s  %d errors", p.Workload, p.Elapsed.Seconds(), p.Operations, rate, p.Errors)
	if r.overwrite {
		fmt.Fprintf(r.progressOut, "\r%s\x1b[K", line)
	} else {
		fmt.Fprintln(r.progressOut, line)
	}
}

// clear takes the progress line away.
func (r benchReport) clear() {
	if r.progressOut != nil && r.overwrite {
		fmt.Fprint(r.progressOut, "\r\x1b[K")
	}
}

// add prints the row of one result.
func (r benchReport) add(b *bench.Result) {
	if r.json {
		return
	}
	if !*r.header {
		*r.header = true
		fmt.Fprintf(r.out, benchColumns, "WORKLOAD", "CONNS", "DEPTH", "OPS/S", "P50", "P90", "P99", "P99.9", "MAX", "ERRORS")
	}
	l := &b.Latency
	fmt.Fprintf(r.out, benchColumns, b.Workload, fmt.Sprint(b.Connections), fmt.Sprint(b.Depth), fmt.Sprintf("%.0f", b.Rate),
		microseconds(l.P50), microseconds(l.P90), microseconds(l.P99), microseconds(l.P999), microseconds(l.Max), fmt.Sprint(sumOf(b.Errors)))
	for _, note := range benchNotes(b) {
		fmt.Fprintf(r.out, "  %s\n", note)
	}
}

// benchNotes is what does not fit into the row.
func benchNotes(b *bench.Result) (notes []string) {
	if b.Partial {
		notes = append(notes, fmt.Sprintf("interrupted: partial result of %.1fs", b.Seconds))
	}
	if o := b.Order; o != nil {
		notes = append(notes, fmt.Sprintf("%d rounds; %d of %d pairs of waiters out of order; %d times two holders", o.Rounds, o.Inverted, o.Pairs, o.TwoHolders))
	}
	if b.Workload == bench.Held {
		notes = append(notes, fmt.Sprintf("%d of %d keys held", b.Operations, b.Keys))
	}
	if len(b.Errors) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(b.Errors)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", b.Errors[kind], kind))
		}
		notes = append(notes, "failed requests: "+strings.Join(kinds, ", "))
	}
	if b.Failure != "" {
		notes = append(notes, "first failure: "+b.Failure)
	}
	return notes
}

// close prints the JSON document, if that was asked for.
func (r benchReport) close(results []*bench.Result) error {
	if !r.json {
		return nil
	}
	return writeJSON(r.out, map[string]any{"results": results})
}

func sumOf(counts map[string]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
