//go:build linux

package child

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tooLong is when a test gives up; nothing here should take a second.
const tooLong = 20 * time.Second

// script is a shell script that runs and reports through a FIFO.
type script struct {
	*Process
	t    *testing.T
	fifo *bufio.Scanner
}

// start runs text, whose words go to the test as lines through fd 9.
func start(t *testing.T, text string) *script {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	// Opened for both, so that neither side waits for the other.
	fifo, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fifo.Close() })
	if err := fifo.SetReadDeadline(time.Now().Add(tooLong)); err != nil {
		t.Fatal(err)
	}
	p, err := Start(&Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", "exec 9>" + name + "\n" + text}, Env: os.Environ(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &script{p, t, bufio.NewScanner(fifo)}
	t.Cleanup(func() { // of a failed test; nothing is left after a good one
		p.End(unix.SIGKILL)
		<-p.Gone()
	})
	return s
}

func (s *script) line() string {
	s.t.Helper()
	if !s.fifo.Scan() {
		s.t.Fatalf("no word from the script: %v", s.fifo.Err())
	}
	return s.fifo.Text()
}

func (s *script) pid() int {
	s.t.Helper()
	pid, err := strconv.Atoi(s.line())
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

func (s *script) status() Status {
	s.t.Helper()
	select {
	case status := <-s.Exited():
		return status
	case <-time.After(tooLong):
		s.t.Fatal("the command goes on")
	}
	return Status{}
}

func (s *script) wantGone() {
	s.t.Helper()
	select {
	case <-s.Gone():
	case <-time.After(tooLong):
		s.t.Fatalf("%v still run", s.Children())
	}
}

func (s *script) wantNotGone() {
	s.t.Helper()
	select {
	case <-s.Gone():
		s.t.Fatal("gone while a process still runs")
	default:
	}
}

func TestStatus(t *testing.T) {
	for text, want := range map[string]Status{
		"exit 0":        {},
		"exit 7":        {Code: 7},
		"kill -KILL $$": {Signal: syscall.SIGKILL},
	} {
		s := start(t, text)
		if got := s.status(); got != want {
			t.Errorf("%s: %+v; want %+v", text, got, want)
		}
		s.wantGone()
	}
}

func TestSignalReachesTheCommandOnce(t *testing.T) {
	s := start(t, `trap 'echo usr1 >&9' USR1; trap 'echo term >&9; exit 3' TERM; echo ready >&9; while :; do sleep 1000 & wait; kill $!; done`)
	s.line()
	for range 3 {
		if err := s.Signal(unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		if got := s.line(); got != "usr1" {
			t.Fatalf("the command says %q", got)
		}
	}
	s.Signal(unix.SIGTERM)
	if got := s.line(); got != "term" {
		t.Errorf("the command says %q", got)
	}
	if got := s.status(); got.Code != 3 {
		t.Errorf("status %+v", got)
	}
	s.End(unix.SIGTERM)
	s.wantGone()
	if err := s.Signal(unix.SIGTERM); err != nil {
		t.Errorf("a signal after the end: %v", err)
	}
}

// What outlives the command is waited for, and can be ended.
func TestLeftBehind(t *testing.T) {
	s := start(t, `sleep 1000 & echo $! >&9; exit 4`)
	pid := s.pid()
	if got := s.status(); got.Code != 4 {
		t.Errorf("status %+v", got)
	}
	s.wantNotGone()
	if got := s.Children(); !slices.Equal(got, []int{pid}) {
		t.Errorf("children %v; want %d", got, pid)
	}
	s.End(unix.SIGTERM)
	s.wantGone()
}

func TestEndReachesAllDescendants(t *testing.T) {
	for name, text := range map[string]string{
		"child":            `sleep 1000 & echo $! >&9; wait`,
		"grandchild":       `sh -c 'sleep 1000 & echo $! >&9; wait' & wait`,
		"own session":      `setsid sh -c 'echo $$ >&9; exec sleep 1000' & wait`,
		"stopped":          `sh -c 'echo $$ >&9; kill -STOP $$; sleep 1000' & wait`,
		"double fork away": `(setsid sh -c 'echo $$ >&9; exec sleep 1000' &) ; sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, text)
			pid := s.pid()
			s.End(unix.SIGTERM)
			s.wantGone()
			if got := s.status(); got.Signal != unix.SIGTERM {
				t.Errorf("status %+v", got)
			}
			if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("process %d after the end: %v", pid, err)
			}
		})
	}
}

func TestKillAfterTerm(t *testing.T) {
	s := start(t, `trap '' TERM; sleep 1000 & echo $! >&9; wait`)
	s.line()
	s.End(unix.SIGTERM) // ignored by both
	s.wantNotGone()
	s.End(unix.SIGKILL)
	s.wantGone()
}

func TestFindAndStartErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"missing in PATH":     {"no-such-command-anywhere", ErrNotFound},
		"missing file":        {filepath.Join(dir, "none"), ErrNotFound},
		"below a file":        {filepath.Join(write("plain", "", 0o755), "x"), ErrNotFound},
		"directory":           {dir, ErrNotExecutable},
		"not executable":      {write("text", "#!/bin/sh\n", 0o644), ErrNotExecutable},
		"no interpreter line": {write("garbage", "\x00\x01", 0o755), ErrNotExecutable},
		"missing interpreter": {write("script", "#!/no/such/shell\n", 0o755), ErrNotExecutable},
	} {
		path, err := Find(c.path)
		if err == nil {
			_, err = Start(&Command{Path: path, Args: []string{path}})
		}
		var start *StartError
		if !errors.As(err, &start) || !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.path+": "+c.want.Error()) {
			t.Errorf("%s: error %v; want %v", name, err, c.want)
		}
	}
}

func TestParentOf(t *testing.T) {
	for stat, want := range map[string]int{
		"12 (sh) S 34 12 12 0":      34,
		"12 (a b) c) (x) R 56 12 1": 56,
		"12 (sh)":                   0,
		"":                          0,
		"12 (sh) S none 1":          0,
	} {
		if got := parentOf([]byte(stat)); got != want {
			t.Errorf("%q: %d; want %d", stat, got, want)
		}
	}
}

func TestProcessesWithParent(t *testing.T) {
	s := start(t, `echo $$ >&9; sleep 1000 & wait`)
	if pid := s.pid(); !slices.Contains(processesWithParent(os.Getpid()), pid) {
		t.Errorf("the child %d is not among the children of %d", pid, os.Getpid())
	}
	s.End(unix.SIGTERM)
	s.wantGone()
}
