package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/bench"
	"holdfast/cmd/holdfast/internal/fakeserver"
	"holdfast/wire"
)

var smallBench = []string{"-c", "2", "-d", "8", "--keys", "64", "-t", "200ms", "--warmup", "10ms"}

func TestBenchTable(t *testing.T) {
	s := startServer(t)
	o := s.command(append([]string{"bench", "--addr", s.addr, "-w", "closed,pipelined,handoff,held"}, smallBench...)...)
	number, latency := `\d+`, `\d+(\.\d+)?(µs|ms)`
	row := func(name, depth string) string {
		return name + ` +2 +` + depth + ` +` + number + strings.Repeat(` +`+latency, 5) + " +0\n"
	}
	want := regexp.MustCompile(`^WORKLOAD +CONNS +DEPTH +OPS/S +P50 +P90 +P99 +P99.9 +MAX +ERRORS\n` +
		row("closed", "1") + row("pipelined", "8") +
		row("handoff", "1") + `  \d+ rounds; 0 of \d+ pairs of waiters out of order; 0 times two holders\n` +
		row("held", "8") + "  64 of 64 keys held\n$")
	if o.code != 0 || o.stderr != "" || !want.MatchString(o.stdout) {
		t.Errorf("%+v", o)
	}
}

func TestBenchJSON(t *testing.T) {
	s := startServer(t)
	o := s.command(append([]string{"bench", "--addr", s.addr, "-w", "pipelined,handoff", "--tickets", "-o", "json"}, smallBench...)...)
	var got struct{ Results []bench.Result }
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
		t.Fatal(err, o)
	}
	if o.code != 0 || len(got.Results) != 2 {
		t.Fatalf("%+v", o)
	}
	r := got.Results[0]
	if r.Workload != bench.Pipelined || r.Connections != 2 || r.Depth != 8 || r.Keys != 64 || r.Operation != "acquire+release" ||
		r.Operations == 0 || r.Rate <= 0 || r.Seconds < 0.05 || r.Latency.Samples == 0 || r.Latency.P50 <= 0 || r.Partial {
		t.Errorf("%+v", r)
	}
	if r := got.Results[1]; r.Workload != bench.Handoff || r.Order == nil || r.Order.Rounds == 0 {
		t.Errorf("%+v", r)
	}
}

// Load goes to the one server that the command line names, and nowhere else.
func TestBenchTargets(t *testing.T) {
	s := startServer(t) // in HOLDFAST_ADDRS
	standby := fakeserver.NewServer()
	standby.Hello.Role, standby.Hello.Node, standby.Hello.Addr = wire.RoleStandby, []byte("n2"), []byte(s.addr)
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{nil, "name the server to load with --addr"},
		{[]string{"--addr", s.addr + ",127.0.0.1:1"}, "2 addresses; a benchmark loads one"},
		{[]string{"--addr", "127.0.0.1:1"}, "127.0.0.1:1: connect: connection refused"},
		{[]string{"--addr", standby.Start(t)}, "node n2 is standby: name the active, " + s.addr},
		{[]string{"--addr", s.addr, "-w", "closed,fast"}, `--workload "fast": one or more of [closed pipelined handoff held]`},
		{[]string{"--addr", s.addr, "-c", "-1"}, "connections: -1; 1 to 10000"},
		{[]string{"--addr", s.addr, "-t", "0s"}, "duration: 0s; more than 0"},
		{[]string{"--addr", s.addr, "-w", "pipelined", "--keys", "10"}, "keys: 10; at least one for each of the 1024 outstanding requests"},
	} {
		if o := s.command(append([]string{"bench"}, c.args...)...); o.code != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, c.stderr) {
			t.Errorf("%v: %+v; want %q", c.args, o, c.stderr)
		}
	}
}

func TestBenchReportsFailures(t *testing.T) {
	full := fakeserver.NewServer()
	full.Intercept = func(c *fakeserver.Conn, r *wire.Request) bool {
		if r.Op == wire.OpAcquire {
			c.Reply(r, wire.Reply{Status: wire.StatusError, Code: wire.CodeLimit, Message: []byte("full")})
		}
		return r.Op == wire.OpAcquire
	}
	o := command(t.Context(), nil, append([]string{"bench", "--addr", full.Start(t), "-w", "held"}, smallBench...)...)
	if o.code != exitUnreachable || !strings.Contains(o.stdout, "  0 of 64 keys held\n  failed requests: 64 error 5: limit reached\n") {
		t.Errorf("%+v", o)
	}
}

// Ctrl-C prints what was measured until then.
func TestBenchInterrupted(t *testing.T) {
	s := startServer(t)
	p := s.start("", "bench", "--addr", s.addr, "-w", "closed,pipelined", "-t", "1h", "--warmup", "0s", "-c", "2", "--progress")
	p.wantProgress()
	p.signal(unix.SIGINT)
	o := p.wantExit(130)
	if !regexp.MustCompile(`closed .*\n  interrupted: partial result of \d+\.\ds\n$`).MatchString(o.stdout) {
		t.Errorf("%+v", o)
	}
}

func TestBenchProgressLine(t *testing.T) {
	var out strings.Builder
	r := benchReport{progressOut: &out, overwrite: true, last: &bench.Progress{}, header: new(bool)}
	r.progress(bench.Progress{Workload: bench.Closed, Elapsed: 1e9, Operations: 1000})
	r.progress(bench.Progress{Workload: bench.Closed, Elapsed: 3e9, Operations: 5000, Errors: 2})
	r.clear()
	want := "\rclosed   1s        1000 operations        1000/s  0 errors\x1b[K" +
		"\rclosed   3s        5000 operations        2000/s  2 errors\x1b[K" + "\r\x1b[K"
	if out.String() != want {
		t.Errorf("got %q; want %q", out.String(), want)
	}
}
