package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/cmd/holdfast/internal/session"
	"holdfast/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// tooLong is when a test gives up waiting.
const tooLong = 30 * time.Second

// The programs under test, built once for all tests.
var holdfastPath, holdfastdPath string

func TestMain(m *testing.M) {
	flag.Parse()
	// Whoever started the tests may have had SIGHUP ignored, which the programs
	// under test would inherit; what this process catches they get as usual.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	dir, err := os.MkdirTemp("", "holdfast-test")
	if err == nil {
		holdfastPath, holdfastdPath = filepath.Join(dir, "holdfast"), filepath.Join(dir, "holdfastd")
		err = errors.Join(build(holdfastPath, "."), build(holdfastdPath, "../server"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// build builds a program like the test itself: with the race detector or without.
func build(path, pkg string) error {
	args := append([]string{"build", "-buildvcs=false", "-ldflags=-X main.version=v1.2.3-test", "-o", path}, raceFlag...)
	out, err := exec.Command("go", append(args, pkg)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// server is a holdfastd of its own.
type server struct {
	t    *testing.T
	addr string
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended
}

// startServer starts a server on free ports. env is added to its environment.
func startServer(t *testing.T, env ...string) *server {
	t.Helper()
	s := &server{t: t, cmd: exec.Command(holdfastdPath), done: make(chan struct{})}
	s.cmd.Env = append([]string{"HOLDFAST_NATIVE_ADDR=127.0.0.1:0", "HOLDFAST_HTTP_ADDR=127.0.0.1:0"}, env...)
	log, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := make(chan string, 1)
	go func() {
		defer close(s.done)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if _, rest, found := strings.Cut(lines.Text(), " native="); found && strings.Contains(lines.Text(), "msg=started") {
				addr <- strings.Fields(rest)[0]
			}
		}
		s.cmd.Wait()
	}()
	t.Cleanup(s.kill)
	select {
	case s.addr = <-addr:
	case <-s.done:
		t.Fatal("the server ended at once")
	case <-time.After(tooLong):
		t.Fatal("the server does not start")
	}
	return s
}

func (s *server) kill() {
	s.cmd.Process.Kill()
	<-s.done
}

// env is what a command needs to find the server.
func (s *server) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_ADDRS=" + s.addr}
}

// outcome is what a command left.
type outcome struct {
	code           int
	stdout, stderr string
}

// command runs holdfast in this process: for everything but run, which reaps
// whatever children the process has.
func command(ctx context.Context, env []string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, env, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

func (s *server) command(args ...string) outcome {
	s.t.Helper()
	return command(s.t.Context(), s.env(), args...)
}

// must returns the standard output of a command that has to succeed.
func (s *server) must(args ...string) string {
	s.t.Helper()
	o := s.command(args...)
	if o.code != 0 {
		s.t.Fatalf("holdfast %s: exit code %d: %s", strings.Join(args, " "), o.code, o.stderr)
	}
	return strings.TrimSuffix(o.stdout, "\n")
}

// wantFree fails if the key is held.
func (s *server) wantFree(key string) {
	s.t.Helper()
	s.must("release", key, s.must("acquire", key, "--try"))
}

// wantHeld fails if the key is free.
func (s *server) wantHeld(key string) {
	s.t.Helper()
	if o := s.command("acquire", key, "--try"); o.code != exitNotAcquired {
		s.t.Fatalf("acquire --try: exit code %d, %s%s; want the key to be held", o.code, o.stdout, o.stderr)
	}
}

// process is a holdfast of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	stderr *output
	done   chan struct{} // closed once it has ended
}

// output collects what a process writes.
type output struct {
	written chan struct{} // has an element once something was

	mu  sync.Mutex // guards what follows
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.written <- struct{}{}:
	default:
	}
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start starts holdfast as a process. wrap, if not empty, is a shell script
// that ends with exec "$@".
func (s *server) start(wrap string, args ...string) *process {
	s.t.Helper()
	argv := append([]string{holdfastPath}, args...)
	if wrap != "" {
		argv = append([]string{"/bin/sh", "-c", wrap, "sh"}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = s.env()
	return startProcess(s.t, cmd)
}

func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(tooLong)); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, stdout: bufio.NewScanner(r), stderr: &output{written: make(chan struct{}, 1)}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = w, p.stderr
	cmd.WaitDelay = tooLong
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		cmd.Wait() // the test looks at ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill() // of a failed test; it has ended after a good one
		<-p.done
		r.Close()
	})
	return p
}

// line returns the next line of standard output.
func (p *process) line() string {
	p.t.Helper()
	if !p.stdout.Scan() {
		p.t.Fatalf("no line: %v; standard error: %s", p.stdout.Err(), p.stderr)
	}
	return p.stdout.Text()
}

func (p *process) wantLine(want string) {
	p.t.Helper()
	if got := p.line(); got != want {
		p.t.Fatalf("standard output has %q; want %q", got, want)
	}
}

// wantProgress returns once something was written to standard error.
func (p *process) wantProgress() {
	p.t.Helper()
	select {
	case <-p.stderr.written:
	case <-time.After(tooLong):
		p.t.Fatal("nothing on standard error")
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code and what was not read of standard output.
func (p *process) wait() outcome {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(tooLong):
		p.t.Fatalf("the process does not end; standard error: %s", p.stderr)
	}
	var rest strings.Builder
	for p.stdout.Scan() {
		rest.WriteString(p.stdout.Text() + "\n")
	}
	return outcome{p.cmd.ProcessState.ExitCode(), rest.String(), p.stderr.String()}
}

func (p *process) wantExit(code int) outcome {
	p.t.Helper()
	o := p.wait()
	if o.code != code {
		p.t.Fatalf("exit code %d; want %d; standard error: %s", o.code, code, o.stderr)
	}
	return o
}

// holder is a client that holds a key and sees who waits for it.
type holder struct {
	t     *testing.T
	conn  *session.Conn
	key   string
	token uint64
}

// hold acquires the key over a connection of its own, waiting if need be.
func (s *server) hold(key string) *holder {
	s.t.Helper()
	c, err := session.Dial(s.t.Context(), s.addr, session.Config{Owner: "holder", Software: "test", Timeout: tooLong})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), tooLong)
	s.t.Cleanup(cancel)
	c.Guard(ctx)
	h := &holder{t: s.t, conn: c, key: key}
	c.Queue(&wire.Request{Op: wire.OpAcquire, Flags: wire.FlagContended, ID: 1, Key: []byte(key), LeaseMS: 600_000})
	h.token = h.await(wire.OpAcquire, wire.StatusGranted).Token
	return h
}

// await reads up to the frame with that op and status.
func (h *holder) await(op wire.Op, status wire.Status) wire.Reply {
	h.t.Helper()
	var r wire.Reply
	for {
		if err := h.conn.Next(&r); err != nil {
			h.t.Fatalf("while waiting for %v %q: %v", op, status, err)
		}
		if r.Op == op && r.Status == status {
			return r
		}
	}
}

// awaitWaiter returns once somebody waits for the key.
func (h *holder) awaitWaiter() {
	h.t.Helper()
	h.await(wire.OpContended, wire.StatusPush)
}

func (h *holder) release() {
	h.t.Helper()
	h.conn.Queue(&wire.Request{Op: wire.OpRelease, ID: 2, Key: []byte(h.key), Token: h.token})
	h.await(wire.OpRelease, wire.StatusReleased)
}

// mustRead reads a whole file.
func mustRead(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// failingWriter is a standard output that is gone.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
