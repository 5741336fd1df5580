package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sh is a command that runs a shell script.
func sh(script string) []string { return []string{"--", "/bin/sh", "-c", script} }

// forever keeps a shell waiting, once it has said that it is ready, in a way
// that lets its traps run at once. A trap that ends it uses KILL for PID: until
// that has become sleep it still has the shell's traps, and would lose a TERM.
const forever = "sleep 1000 & PID=$!; echo ready; while kill -0 $PID; do wait $PID; done 2>/dev/null"

func (s *server) run(key string, args ...string) *process {
	s.t.Helper()
	return s.start("", append([]string{"run", key}, args...)...)
}

func TestRunExitCodes(t *testing.T) {
	s := startServer(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   []string
		code   int
		stderr string // a part of it
	}{
		"success":        {[]string{"--", "true"}, 0, ""},
		"failure":        {sh("exit 7"), 7, ""},
		"killed":         {sh("kill -KILL $$"), 137, ""},
		"terminated":     {sh("kill -TERM $$"), 143, ""},
		"not found":      {[]string{"--", "no-such-command"}, 127, "no-such-command: command not found"},
		"not executable": {[]string{"--", script}, 126, script + ": not executable: permission denied"},
		"no dashes":      {[]string{"true"}, 125, "put -- between KEY and the command"},
		"no command":     {[]string{"--"}, 125, "the command after -- is missing"},
		"bad flag":       {[]string{"--leese", "1s", "--", "true"}, 125, "unknown flag: --leese"},
		"bad policy":     {[]string{"--on-lost", "panic", "--", "true"}, 125, "one of term, kill, ignore"},
		"bad lease":      {[]string{"--lease", "25h", "--", "true"}, 125, "lease"},
		"bad kill-after": {[]string{"--kill-after", "-1s", "--", "true"}, 125, "--kill-after: -1s; 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			o := s.run("job", c.args...).wantExit(c.code)
			if !strings.Contains(o.stderr, c.stderr) || c.stderr == "" && o.stderr != "" {
				t.Errorf("standard error %q; want %q in it", o.stderr, c.stderr)
			}
			s.wantFree("job")
		})
	}
}

func TestRunNotAcquired(t *testing.T) {
	s := startServer(t)
	s.hold("job")
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"--try"}, "holdfast: \"job\" is taken\n"},
		{[]string{"--wait", "0"}, "holdfast: \"job\" is taken\n"},
		{[]string{"--wait", "50ms"}, "holdfast: \"job\" was not granted within 50ms\n"},
		{[]string{"--try", "--quiet"}, ""},
	} {
		o := s.run("job", append(c.args, "--", "echo", "ran")...).wantExit(exitNotAcquired)
		if o.stdout != "" || o.stderr != c.stderr {
			t.Errorf("%v: printed %q and %q; want nothing and %q", c.args, o.stdout, o.stderr, c.stderr)
		}
	}
}

func TestRunWithoutServer(t *testing.T) {
	t.Parallel() // it looks for one for a while
	s := startServer(t)
	s.kill()
	o := s.run("job", "--", "echo", "ran").wantExit(exitFailure)
	if o.stdout != "" || !strings.Contains(o.stderr, s.addr) || !strings.Contains(o.stderr, adviceNoServer) {
		t.Errorf("printed %q and %q", o.stdout, o.stderr)
	}
}

func TestRunPassesTheEnvironment(t *testing.T) {
	s := startServer(t, "HOLDFAST_AUTH_TOKEN=let-me-in-at-once")
	cmd := exec.Command(holdfastPath, "run", "a key", "--", "env")
	cmd.Env = append(s.env(), "HOLDFAST_AUTH_TOKEN=let-me-in-at-once", "HOLDFAST_CLUSTER_SECRET=hush", "HOLDFAST_CLUSTER_SECRET_FILE=/x",
		"HOLDFAST_TOKENS_FILE=/y", "HOLDFAST_KEY=old", "HOLDFAST_FENCING_TOKEN=1", "OTHER=stays")
	o := startProcess(t, cmd).wantExit(0)
	env := strings.Split(strings.TrimSpace(o.stdout), "\n")
	for _, want := range []string{"HOLDFAST_KEY=a key", "HOLDFAST_ADDRS=" + s.addr, "OTHER=stays"} {
		if !slices.Contains(env, want) {
			t.Errorf("%q is missing in %q", want, env)
		}
	}
	tokens := 0
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(secrets, name) {
			t.Errorf("the command sees %s", name)
		}
		if name == "HOLDFAST_FENCING_TOKEN" {
			tokens++
			if n, err := strconv.ParseUint(value, 10, 64); err != nil || n < 2 {
				t.Errorf("token %q", value)
			}
		}
	}
	if tokens != 1 {
		t.Errorf("%d fencing tokens", tokens)
	}
}

func TestRunPassesStandardStreams(t *testing.T) {
	s := startServer(t)
	cmd := exec.Command(holdfastPath, append([]string{"run", "job"}, sh("cat; echo err >&2")...)...)
	cmd.Env, cmd.Stdin = s.env(), strings.NewReader("in\n")
	if o := startProcess(t, cmd).wantExit(0); o.stdout != "in\n" || o.stderr != "err\n" {
		t.Errorf("printed %q and %q", o.stdout, o.stderr)
	}
}

func TestRunExtendsTheLease(t *testing.T) {
	t.Parallel() // it waits for leases to pass
	s := startServer(t)
	p := s.run("job", append([]string{"--lease", "1s"}, sh(forever)...)...)
	p.wantLine("ready")
	s.must("acquire", "other", "--lease", "3s")
	s.must("acquire", "other", "--wait", "20s") // three leases later
	s.wantHeld("job")
	p.signal(unix.SIGTERM)
	p.wantExit(143)
	s.wantFree("job")
}

// Each signal reaches the command once, and only through holdfast.
func TestRunPassesSignalsOn(t *testing.T) {
	s := startServer(t)
	names := []string{"HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH"}
	var traps strings.Builder
	for _, name := range names {
		fmt.Fprintf(&traps, "trap 'echo %s' %s; ", name, name)
	}
	p := s.run("job", sh(traps.String()+"trap 'echo TERM; kill -KILL $PID; exit 3' TERM; "+forever)...)
	p.wantLine("ready")
	for _, name := range names {
		p.signal(unix.SignalNum("SIG" + name))
		p.wantLine(name)
	}
	p.signal(unix.SIGUSR1)
	p.wantLine("USR1") // nothing came twice meanwhile
	s.wantHeld("job")
	p.signal(unix.SIGTERM)
	p.wantLine("TERM")
	p.wantExit(3)
}

func TestRunSignalWhileWaiting(t *testing.T) {
	s := startServer(t)
	for _, sig := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			h := s.hold("job")
			p := s.run("job", "--", "echo", "ran")
			h.awaitWaiter()
			p.signal(sig)
			o := p.wantExit(exitSignal + int(sig))
			if want := fmt.Sprintf("holdfast: signal %s while waiting for \"job\": withdrawn\n", unix.SignalName(sig)); o.stdout != "" || o.stderr != want {
				t.Errorf("printed %q and %q; want nothing and %q", o.stdout, o.stderr, want)
			}
			h.release()
			s.wantFree("job")
		})
	}
}

// A terminal that changes its size is of no interest to one who waits.
func TestRunWindowChangeWhileWaiting(t *testing.T) {
	s := startServer(t)
	h := s.hold("job")
	p := s.run("job", "--", "echo", "ran")
	h.awaitWaiter()
	p.signal(unix.SIGWINCH)
	h.release()
	p.wantLine("ran")
	p.wantExit(0)
}

// A signal that was ignored from the start stays so, for the command too.
func TestRunKeepsSignalsIgnored(t *testing.T) {
	s := startServer(t)
	p := s.start(`trap '' HUP INT; exec "$@"`, append([]string{"run", "job"}, sh(forever)...)...)
	p.wantLine("ready")
	p.signal(unix.SIGHUP)
	p.signal(unix.SIGINT)
	p.signal(unix.SIGTERM)
	p.wantExit(143)
}

// A command that dies from a signal takes what it started with it.
func TestRunSignalEndsWhatTheCommandStarted(t *testing.T) {
	s := startServer(t)
	p := s.run("job", sh(`sleep 1000 & echo $!; wait`)...)
	pid, err := strconv.Atoi(p.line())
	if err != nil {
		t.Fatal(err)
	}
	p.signal(unix.SIGTERM)
	p.wantExit(143)
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("the command's child after the end: %v", err)
	}
	s.wantFree("job")
}

// The lock is kept until everything that the command started has ended.
func TestRunWaitsForWhatTheCommandLeftBehind(t *testing.T) {
	s := startServer(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.run("job", sh(fmt.Sprintf("(setsid sh -c 'echo $$; read word <%s; echo $word' &); exit 9", fifo))...)
	pid := p.line()
	p.wantProgress()  // the command has ended a second ago
	s.wantHeld("job") // what it started has not
	if err := os.WriteFile(fifo, []byte("on\n"), 0); err != nil {
		t.Fatal(err)
	}
	p.wantLine("on")
	o := p.wantExit(9)
	if want := "holdfast: processes that the command left behind still run (pid " + pid + "): the lock is kept until they end\n"; o.stderr != want {
		t.Errorf("standard error %q; want %q", o.stderr, want)
	}
	s.wantFree("job")
}

func TestRunLostLock(t *testing.T) {
	const onTerm = `trap 'echo term; kill -KILL $PID; exit 0' TERM; `
	for name, c := range map[string]struct {
		args   []string
		script string
		lines  []string // printed after ready
		code   int
		stderr string
	}{
		"term":            {nil, onTerm + forever, []string{"term"}, exitLost, "ending the command (SIGTERM, SIGKILL after 5s)"},
		"term is ignored": {[]string{"--kill-after", "10ms"}, `trap '' TERM; ` + forever, nil, exitLost, "ending the command"},
		"kill":            {[]string{"--on-lost", "kill"}, onTerm + forever, nil, exitLost, "killing the command"},
		"ignore":          {[]string{"--on-lost", "ignore"}, "echo ready; sleep 3; echo done; exit 3", []string{"done"}, 3, "the command goes on without it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			p := s.run("job", append(append([]string{"--lease", "1s"}, c.args...), sh(c.script)...)...)
			p.wantLine("ready")
			s.kill()
			for _, line := range c.lines {
				p.wantLine(line)
			}
			o := p.wantExit(c.code)
			if !strings.Contains(o.stderr, c.stderr) || !strings.Contains(o.stderr, "its lease ran out") || o.stdout != "" {
				t.Errorf("printed %q and %q; want %q in it", o.stdout, o.stderr, c.stderr)
			}
		})
	}
}

// While holdfast is stopped, nobody extends: once it goes on, it finds that
// another has the lock.
func TestRunStoppedBeyondTheLease(t *testing.T) {
	t.Parallel() // it waits for the lease to pass
	s := startServer(t)
	p := s.run("job", append([]string{"--lease", "1s"}, sh(`trap 'echo term; kill -KILL $PID; exit 0' TERM; `+forever)...)...)
	p.wantLine("ready")
	p.signal(unix.SIGSTOP)
	h := s.hold("job") // granted when the lease has run out
	p.signal(unix.SIGCONT)
	p.wantLine("term")
	p.wantExit(exitLost)
	h.release() // it was not taken from the new holder
}

// If a command ends before the loss is noticed, the release tells.
func TestRunReleaseFindsTheLockLost(t *testing.T) {
	s := startServer(t)
	p := s.run("job", sh(`echo "$HOLDFAST_FENCING_TOKEN"; sleep 1000`)...)
	token := p.line()
	s.must("release", "job", token) // behind its back
	p.signal(unix.SIGTERM)
	o := p.wantExit(exitLost)
	if !strings.Contains(o.stderr, "the command was not covered until its end") {
		t.Errorf("standard error %q", o.stderr)
	}
}

// When holdfast is killed, the command is told, and the lock stays until its lease ends.
func TestRunKilled(t *testing.T) {
	s := startServer(t)
	report := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(report, 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.run("job", sh(fmt.Sprintf(`exec 9<>%s; trap 'echo term >&9; kill -KILL $PID; exit' TERM; %s`, report, forever))...)
	p.wantLine("ready")
	f, err := os.OpenFile(report, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(tooLong))
	p.signal(unix.SIGKILL)
	buf := make([]byte, 16)
	if n, err := f.Read(buf); err != nil || string(buf[:n]) != "term\n" {
		t.Errorf("the command reports %q, %v", buf[:n], err)
	}
	s.wantHeld("job")
	p.wantExit(-1)
}

func TestRunSemaphoreAndShared(t *testing.T) {
	s := startServer(t)
	for key, flags := range map[string][]string{"semaphore": {"--slots", "2"}, "shared": {"--shared"}} {
		one := s.run(key, append(flags, sh(forever)...)...)
		one.wantLine("ready")
		two := s.run(key, append(flags, sh("echo ready; exit 0")...)...)
		two.wantLine("ready")
		two.wantExit(0)
		o := s.run(key, "--try", "--", "true").wait()
		if o.code == 0 {
			t.Errorf("%s: an exclusive lock beside it", key)
		}
		one.signal(unix.SIGTERM)
		one.wantExit(143)
	}
}

// Waiting goes on through a restart of the server, with a bound or without.
func TestRunWaitsThroughARestart(t *testing.T) {
	for name, args := range map[string][]string{"without bound": nil, "bounded": {"--wait", "1m"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			h := s.hold("job")
			p := s.run("job", append(args, "--", "echo", "ran")...)
			h.awaitWaiter()
			s.kill()
			startServer(t, "HOLDFAST_NATIVE_ADDR="+s.addr)
			p.wantLine("ran")
			p.wantExit(0)
		})
	}
}

// A server that goes away for good ends a bounded wait.
func TestRunServerGoneWhileWaiting(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := s.hold("job")
	p := s.run("job", "--wait", "1s", "--", "echo", "ran")
	h.awaitWaiter()
	s.kill()
	// Whether the wait or the patience with the server ends first is open.
	if o := p.wait(); o.stdout != "" || o.code != exitFailure && o.code != exitNotAcquired {
		t.Errorf("%+v", o)
	}
}
