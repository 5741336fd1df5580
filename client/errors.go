package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/wire"
)

// What can go wrong, for errors.Is. The errors that are returned say more:
// which key, which nodes, and why.
var (
	// ErrNotAcquired: a node was asked and did not grant the key within the
	// wait. Where a context ended the wait, the error also is that context's
	// (context.DeadlineExceeded or context.Canceled).
	ErrNotAcquired = errors.New("not acquired")

	// ErrNotHeld: the token does not hold the key (any more): its lease had run
	// out, or it was taken away. What was done under it may not have been
	// covered. Every *LostError is one.
	ErrNotHeld = errors.New("not held")

	// ErrReleased: this Lock was released before.
	ErrReleased = errors.New("already released")

	// ErrNoActive: no node that serves could be reached. The text lists the
	// nodes that were tried.
	ErrNoActive = errors.New("no active node")

	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("client closed")

	// ErrUnauthorized: the auth token is missing or wrong, or does not allow
	// this key (wire.CodeUnauthenticated and wire.CodeNotAllowed).
	ErrUnauthorized = errors.New("not authorized")

	// ErrMismatch: the request names other slots, or another mode, than what
	// stands on the key (wire.CodeMismatch).
	ErrMismatch = errors.New("slots or mode differ")
)

// ServerError is an error that a node answered with.
type ServerError struct {
	Code    wire.Code
	Message string // which argument or limit, and its bound
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("server error %d (%v): %s", uint16(e.Code), e.Code, e.Message)
}

// Is says whether e is ErrUnauthorized or ErrMismatch.
func (e *ServerError) Is(target error) bool {
	switch e.Code {
	case wire.CodeUnauthenticated, wire.CodeNotAllowed:
		return target == ErrUnauthorized
	case wire.CodeMismatch:
		return target == ErrMismatch
	}
	return false
}

// Reason tells why a lock was lost.
type Reason uint8

// The reasons of a LostError.
const (
	LostExpired    Reason = iota + 1 // the lease ran out by this machine's clock
	LostForced                       // an operator released it
	LostSuperseded                   // it gave way after two actives met
	LostDenied                       // a node answered that the token does not hold the key
	LostConnection                   // bound to a connection that was lost and not replaced in time
	LostMaxHold                      // the longest hold of an automatically extended lock is over
	LostClosed                       // the Client was closed, so nobody watches the lease any more
)

var reasonTexts = [...]string{
	LostExpired:    "its lease ran out",
	LostForced:     "released by an operator",
	LostSuperseded: "superseded after a cluster merge",
	LostDenied:     "the server says that it is not held",
	LostConnection: "its connection was lost",
	LostMaxHold:    "its longest hold is over",
	LostClosed:     "the client was closed",
}

// String returns the reason in a few words.
func (r Reason) String() string {
	if int(r) < len(reasonTexts) && reasonTexts[r] != "" {
		return reasonTexts[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// LostError says that a lock ended without having been released. It is an ErrNotHeld.
type LostError struct {
	Key    string
	Token  uint64
	Reason Reason
}

func (e *LostError) Error() string {
	return fmt.Sprintf("lock %q (token %d) lost: %v", e.Key, e.Token, e.Reason)
}

// Is says whether target is ErrNotHeld, or ErrClosed where that is the reason.
func (e *LostError) Is(target error) bool {
	return target == ErrNotHeld || e.Reason == LostClosed && target == ErrClosed
}

// opError is what became of one operation on one key.
type opError struct {
	op, key string
	detail  string // in addition to the causes; may be empty
	causes  []error
}

func failed(op, key, detail string, causes ...error) error {
	return &opError{op: op, key: key, detail: detail, causes: causes}
}

func (e *opError) Error() string {
	text := fmt.Sprintf("%s %q: %v", e.op, e.key, chain(e.causes))
	if e.detail != "" {
		text += ": " + e.detail
	}
	return text
}

func (e *opError) Unwrap() []error { return e.causes }

// chain is several errors as one, on one line.
type chain []error

func (c chain) Error() string {
	texts := make([]string, len(c))
	for i, err := range c {
		texts[i] = err.Error()
	}
	return strings.Join(texts, ": ")
}

func (c chain) Unwrap() []error { return c }

// withContext adds to err, which may be nil, why ctx has ended, if it has.
func withContext(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case err == nil:
		return chain(contextCauses(ctx))
	}
	return append(chain{err}, contextCauses(ctx)...)
}

// contextCauses returns why ctx ended: its error and, where one was given
// that says more, its cause.
func contextCauses(ctx context.Context) []error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return []error{err}
	}
	return []error{err, cause}
}

// errDropped is the result of a request whose connection ended before it was
// answered: nobody knows what became of it.
var errDropped = errors.New("connection lost before the answer")

// errLate is the result of a request that was not answered in time.
var errLate = errors.New("no answer in time")

// errUnsent is the result of a request for which the connection ended before it
// was sent.
var errUnsent = errors.New("connection lost before the request")
