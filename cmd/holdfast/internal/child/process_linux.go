package child

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is the command and, once it has ended, what it left behind. A
// program can have one at a time: it reaps every child of the program.
type Process struct {
	// Static after Start.
	pid    int
	exited chan Status
	gone   chan struct{}

	mu    sync.Mutex     // guards what follows; reaping too, so that no pid is signalled that may be another's by then
	alive bool           // the command has not been reaped
	last  syscall.Signal // what End was called with, 0 if it was not
	told  map[int]bool   // children that have got last
}

// Start starts the command with this process's standard input, output and
// error. Its error is a *StartError.
func Start(c *Command) (*Process, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, startError(c.Path, fmt.Errorf("become subreaper: %w", err))
	}
	p := &Process{exited: make(chan Status, 1), gone: make(chan struct{}), alive: true, told: map[int]bool{}}
	started := make(chan error)
	go p.live(c, started)
	if err := <-started; err != nil {
		<-p.gone
		return nil, startError(c.Path, err)
	}
	return p, nil
}

// live starts the command and reaps until no child is left. The death signal
// is tied to the thread that forks, not to the process: hence one goroutine
// that keeps its thread for as long as there are children.
func (p *Process) live(c *Command, started chan<- error) {
	runtime.LockOSThread()
	defer close(p.gone)
	pid, err := syscall.ForkExec(c.Path, c.Args, &syscall.ProcAttr{
		Env:   c.Env,
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Pdeathsig: c.DeathSignal},
	})
	p.pid = pid
	started <- err
	if err != nil {
		return
	}
	for waitForExit() {
		p.reap()
	}
}

// waitForExit returns true when there is a child to reap and false when there
// are no children. It leaves the reaping to the caller, who holds a mutex
// meanwhile.
func waitForExit() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			return true
		}
		if err != unix.EINTR {
			return false // ECHILD: all are gone
		}
	}
}

func (p *Process) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var w syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &w, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			break
		}
		delete(p.told, pid)
		if pid == p.pid {
			p.alive = false
			p.exited <- statusOf(w)
		}
	}
	if p.last != 0 {
		p.tellLocked() // children of those just reaped are ours now
	}
}

// Exited yields the command's status once it has ended.
func (p *Process) Exited() <-chan Status { return p.exited }

// Gone is closed when the command and all that it started have ended and have
// been reaped.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Signal sends sig to the command, if it has not ended.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive {
		return nil
	}
	return ignoreGone(unix.Kill(p.pid, sig))
}

// End sends sig to the command and, as soon as their parents have ended, to
// all that it started. It does not wait.
func (p *Process) End(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != sig {
		p.last = sig
		clear(p.told)
	}
	p.tellLocked()
}

func (p *Process) tellLocked() {
	for _, pid := range p.childrenLocked() {
		if !p.told[pid] {
			p.told[pid] = true
			unix.Kill(pid, p.last)       // fails for a child that has changed its user: it is waited for
			unix.Kill(pid, unix.SIGCONT) // one that is stopped must be able to end
		}
	}
}

// Children lists the processes that are waited for.
func (p *Process) Children() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.childrenLocked()
}

func (p *Process) childrenLocked() []int {
	pids := processesWithParent(unix.Getpid())
	var mine []int
	for _, pid := range pids {
		if isChild(pid) {
			mine = append(mine, pid)
		}
	}
	if len(mine) == 0 && p.alive { // no usable /proc
		mine = append(mine, p.pid)
	}
	return mine
}

// isChild asks the kernel, since /proc may belong to another PID namespace.
func isChild(pid int) bool {
	err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
