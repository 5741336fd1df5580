package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalError is a signal as the cause of a context's end.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return fmt.Sprintf("signal %s", unix.SignalName(e.signal)) }

// ends says whether a signal is one that asks to stop; the others are only of
// interest to a command that runs.
func ends(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM:
		return true
	}
	return false
}

// catch receives the signals until stop is called. Those that this program was
// told to ignore (nohup, background jobs of a script) stay ignored, here and
// for the command.
func catch(signals ...syscall.Signal) (caught <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 32) // more than there are kinds of signals: a burst of one kind may coalesce
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
	return ch, func() { signal.Stop(ch) }
}

// untilSignal returns a context that ends, with a *signalError as its cause,
// at the first of the signals that asks to stop.
func untilSignal(ctx context.Context, caught <-chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-caught:
				if s := sig.(syscall.Signal); stopsWaiting(s) {
					cancel(&signalError{s})
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}

// stopsWaiting says whether a signal ends the wait for a lock: all whose
// default is to end a program.
func stopsWaiting(sig syscall.Signal) bool { return sig != unix.SIGWINCH }

// isSignal says whether ctx was ended by a signal.
func isSignal(ctx context.Context) bool {
	var caught *signalError
	return errors.As(context.Cause(ctx), &caught)
}
