//go:build unix

package child

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// Command is what to run.
type Command struct {
	Path string   // as Find returns it
	Args []string // with the name as the first
	Env  []string
	// DeathSignal is sent to the command when this process dies, also by
	// SIGKILL; 0 = none. Linux only.
	DeathSignal syscall.Signal
}

// Status is how a process ended.
type Status struct {
	Code   int            // exit code, if Signal is 0
	Signal syscall.Signal // that killed it, or 0
}

func statusOf(w syscall.WaitStatus) Status {
	if w.Signaled() {
		return Status{Signal: w.Signal()}
	}
	return Status{Code: w.ExitStatus()}
}

// ErrNotFound and ErrNotExecutable tell why a command can't be started.
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("not executable")
)

// Find looks name up as a shell does. A relative path found through PATH is as
// good as any other, since that is what the user's shell would run.
func Find(name string) (path string, err error) {
	path, err = exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", startError(name, err)
	}
	return path, nil
}

// errInterpreter explains an ENOENT for a file that is there.
var errInterpreter = errors.New("the interpreter in its first line was not found")

// startError sorts a failure to find or to start name.
func startError(name string, err error) error {
	var cause error
	if errors.Is(err, syscall.ENOENT) && exists(name) {
		return &StartError{Name: name, Reason: ErrNotExecutable, Cause: errInterpreter}
	}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		cause = ErrNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		cause = ErrNotExecutable
	default:
		return &StartError{Name: name, Reason: err, Cause: err}
	}
	return &StartError{Name: name, Reason: cause, Cause: err}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// StartError is a command that could not be started.
type StartError struct {
	Name   string
	Reason error // ErrNotFound, ErrNotExecutable or the system's error
	Cause  error // the system's error
}

func (e *StartError) Error() string {
	if e.Reason == e.Cause || errors.Is(e.Reason, ErrNotFound) {
		return fmt.Sprintf("%s: %v", e.Name, e.Reason)
	}
	return fmt.Sprintf("%s: %v: %v", e.Name, e.Reason, cmp.Or(errors.Unwrap(e.Cause), e.Cause))
}

// Unwrap makes errors.Is find both.
func (e *StartError) Unwrap() []error { return []error{e.Reason, e.Cause} }
