package main

import "fmt"

// Exit codes. Those of run follow env, nice and timeout; 75 is sysexits'
// EX_TEMPFAIL, and so are retried by mail and batch systems.
const (
	exitOK            = 0
	exitUnreachable   = 1   // ping: a server can't be reached; bench: requests failed
	exitNotAcquired   = 75  // the lock was not granted in time
	exitLost          = 76  // the token does not hold the key, or the lock was lost while the command ran
	exitFailure       = 125 // bad usage, no server, refused by the server: holdfast itself failed
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // + the signal's number
)

// exitError ends the program with a code. A nil err ends it without a word.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitWith makes err, which may be nil, end the program with code.
func exitWith(code int, err error) error { return &exitError{code: code, err: err} }
