//go:build linux

package cluster

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// line is a line of a node's log.
type line struct {
	at   time.Time // when it was read here
	text string

	Time   time.Time `json:"time"`
	Msg    string    `json:"msg"`
	Event  string    `json:"event"`
	Role   string    `json:"role"`
	Reason string    `json:"reason"`
	Peer   string    `json:"peer"`
	Detail string    `json:"detail"`
	Err    string    `json:"err"`
	Answer string    `json:"answer"`
}

// process is one life of a node.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it is over and all of its log was read

	mu      sync.Mutex // guards what follows
	lines   []line
	role    string        // by the last line that told of one
	changed chan struct{} // closed, and made anew, at each line
}

// launch starts holdfastd with these settings and no others. begin starts the command: in some network namespace.
func launch(t *testing.T, begin func(*exec.Cmd) error, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program), ended: make(chan struct{}), changed: make(chan struct{}), role: "none"}
	p.cmd.Env = append([]string{"HOLDFAST_LOG_FORMAT=json"}, env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := begin(p.cmd); err != nil {
		t.Fatalf("start holdfastd: %v", err)
	}
	go p.read(stderr)
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *process) read(stderr io.Reader) {
	defer close(p.ended)
	in := bufio.NewScanner(stderr)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		l := line{at: time.Now(), text: in.Text()}
		_ = json.Unmarshal(in.Bytes(), &l) // what is no JSON, a panic's stack for instance, is kept as text
		p.add(l)
	}
	p.cmd.Wait()
}

func (p *process) add(l line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, l)
	if l.Event == "role" {
		p.role = l.Role
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// text is the whole log.
func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, l := range p.lines {
		b.WriteString("\t" + l.text + "\n")
	}
	return b.String()
}

// mark is a place in the log: what is logged from now on comes after it.
func (p *process) mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// since returns the lines after a mark that ok picks.
func (p *process) since(mark int, ok func(line) bool) (picked []line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines[mark:] {
		if ok(l) {
			picked = append(picked, l)
		}
	}
	return picked
}

// is says whether this was the last role that the log told of.
func (p *process) is(role string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.role == role
}

func isRole(l line) bool { return l.Event == "role" }

// await returns once the log is as ok wants it; false if that did not come to be in time.
func (p *process) await(limit time.Duration, ok func(lines []line) bool) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	over := false
	for {
		p.mu.Lock()
		good, changed := ok(p.lines), p.changed
		p.mu.Unlock()
		switch {
		case good:
			return true
		case over:
			return false
		}
		select {
		case <-changed:
		case <-p.ended:
			over = true
		case <-late.C:
			over = true
		}
	}
}

// news returns at the next line, or after a while.
func (p *process) news(limit time.Duration) {
	p.mu.Lock()
	changed := p.changed
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

// awaitLine returns the first line after mark that ok picks.
func (p *process) awaitLine(t *testing.T, what string, mark int, ok func(line) bool) line {
	t.Helper()
	var found line
	good := p.await(patience, func(lines []line) bool {
		for _, l := range lines[mark:] {
			if ok(l) {
				found = l
				return true
			}
		}
		return false
	})
	if !good {
		t.Fatalf("the log never told of %s:\n%s", what, p.text())
	}
	return found
}

func (p *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal %v: %v", sig, err)
	}
}

// exit waits for the end and returns the exit code; -1 after a signal that ended it.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.ended
		t.Fatalf("holdfastd did not end:\n%s", p.text())
	}
	return p.cmd.ProcessState.ExitCode()
}
