package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/client"
	"holdfast/cmd/holdfast/internal/child"
)

const (
	// mentionAfter is how long processes that outlive CMD may take to end
	// before the user is told that the lock is kept for them.
	mentionAfter = time.Second
	// lastWait bounds the wait for processes that SIGKILL does not end: those
	// of another user, and those that hang in the kernel.
	lastWait = 5 * time.Second
)

// runner looks after the command while it runs. It belongs to one goroutine.
type runner struct {
	app     *app
	flags   *runFlags
	lock    *client.Lock
	caught  <-chan os.Signal
	process *child.Process

	ended  bool           // CMD has; what it started may still run
	passed syscall.Signal // the last one passed on that asks to stop
	lost   error          // why the lock was lost, nil while it is held
}

// supervise returns when CMD and all that it started has ended.
func (r *runner) supervise() (status child.Status) {
	lost, exited := r.lock.Context().Done(), r.process.Exited()
	var kill, mention, giveUp <-chan time.Time
	for {
		select {
		case sig := <-r.caught:
			r.passOn(sig.(syscall.Signal))
		case <-lost:
			lost, kill = nil, r.onLost()
		case <-kill:
			r.process.End(unix.SIGKILL)
			kill, giveUp = nil, time.After(lastWait)
		case status = <-exited:
			exited, mention = nil, time.After(mentionAfter)
			r.onExit(status)
		case <-mention:
			mention = nil
			r.mentionLeft("the lock is kept until they end")
		case <-giveUp:
			r.mentionLeft("they could not be ended")
			return status
		case <-r.process.Gone():
			if exited != nil {
				status = <-exited // sent before Gone was closed
			}
			return status
		}
	}
}

// passOn gives a signal to CMD, or to what it left behind.
func (r *runner) passOn(sig syscall.Signal) {
	switch {
	case child.FromTerminal(sig):
	case !r.ended:
		if err := r.process.Signal(sig); err != nil {
			r.app.warn("pass %s on: %v", unix.SignalName(sig), err)
		}
		if ends(sig) {
			r.passed = sig
		}
	case ends(sig):
		r.process.End(sig)
	}
}

// onExit ends what CMD left behind, if CMD died from a signal that was passed
// on: sent by a terminal, it would have reached all of them too.
func (r *runner) onExit(status child.Status) {
	r.ended = true
	if status.Signal != 0 && status.Signal == r.passed {
		r.process.End(status.Signal)
	}
}

// onLost does what --on-lost says and returns when SIGKILL is due.
func (r *runner) onLost() (kill <-chan time.Time) {
	r.lost = context.Cause(r.lock.Context())
	switch r.flags.onLost {
	case lostTerm:
		r.app.warn("%v: ending the command (SIGTERM, SIGKILL after %v)", r.lost, r.flags.killAfter)
		r.process.End(unix.SIGTERM)
		return time.After(r.flags.killAfter)
	case lostKill:
		r.app.warn("%v: killing the command", r.lost)
		return time.After(0)
	}
	r.app.warn("%v: the command goes on without it", r.lost)
	return nil
}

func (r *runner) mentionLeft(consequence string) {
	pids := r.process.Children()
	if len(pids) == 0 {
		return
	}
	r.app.warn("processes that the command left behind still run (pid %s): %s",
		strings.Trim(fmt.Sprint(pids), "[]"), consequence)
}

// finish gives the lock back, which comes after everything else, and returns
// the error with the exit code.
func (r *runner) finish(ctx context.Context, status child.Status) error {
	if r.lost == nil {
		r.lost = r.app.release(ctx, r.lock)
	}
	if r.lost != nil && r.flags.onLost != lostIgnore {
		return exitWith(exitLost, fmt.Errorf("%w: the command was not covered until its end", r.lost))
	}
	switch {
	case status.Signal != 0:
		return exitWith(exitSignal+int(status.Signal), nil)
	case status.Code != 0:
		return exitWith(status.Code, nil)
	}
	return nil
}

// release gives the lock back and returns an error if it was not held any
// more. If no server answers, the lease ends the lock: that is no failure of
// the command's.
func (a *app) release(ctx context.Context, lock *client.Lock) (notHeld error) {
	err := lock.Release(ctx)
	switch {
	case errors.Is(err, client.ErrNotHeld):
		return err
	case err != nil:
		a.warn("%v: the lock ends with its lease, %v from now", err, time.Until(lock.Until()).Round(time.Second))
	}
	return nil
}
