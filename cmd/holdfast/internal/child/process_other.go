//go:build unix && !linux

package child

import (
	"errors"
	"os"
	"syscall"
)

// Process is the command. What it leaves behind is neither seen nor waited for
// on this system, which has no subreapers.
type Process struct {
	process *os.Process
	exited  chan Status
	gone    chan struct{}
}

// Start starts the command with this process's standard input, output and
// error. Its error is a *StartError.
func Start(c *Command) (*Process, error) {
	process, err := os.StartProcess(c.Path, c.Args, &os.ProcAttr{
		Env: c.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, startError(c.Path, err)
	}
	p := &Process{process: process, exited: make(chan Status, 1), gone: make(chan struct{})}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	defer close(p.gone)
	state, err := p.process.Wait()
	if err != nil {
		p.exited <- Status{Code: 255}
		return
	}
	p.exited <- statusOf(state.Sys().(syscall.WaitStatus))
}

// Exited yields the command's status once it has ended.
func (p *Process) Exited() <-chan Status { return p.exited }

// Gone is closed when the command has ended.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Signal sends sig to the command, if it has not ended.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// End sends sig to the command. It does not wait.
func (p *Process) End(sig syscall.Signal) { p.Signal(sig) }

// Children lists the processes that are waited for.
func (p *Process) Children() []int {
	select {
	case <-p.gone:
		return nil
	default:
		return []int{p.process.Pid}
	}
}
