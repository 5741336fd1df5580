package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/wire"
)

const (
	maxHops    = 3                      // redirects followed for one try
	retryPause = 200 * time.Millisecond // between tries of the whole list
)

// Answer is what became of a request.
type Answer struct {
	Status wire.Status
	Lease  time.Duration // extend: what the lease is now
	// Unsure reports that the request had been sent before, and that nobody
	// knows whether it was carried out then: after a release, StatusNone may
	// then mean that the first try succeeded.
	Unsure bool
}

// NoAnswerError is a request that none of the addresses answered.
type NoAnswerError struct {
	Tries []error // the last failure of each address, in the order of the list
}

func (e *NoAnswerError) Error() string {
	texts := make([]string, len(e.Tries))
	for i, err := range e.Tries {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes errors.Is look into all of them.
func (e *NoAnswerError) Unwrap() []error { return e.Tries }

// Ask sends a release or an extend to the active that addrs lead to. It tries
// the whole list again and again until ctx ends; then it fails with a
// *NoAnswerError. A server that refuses the request (*Refusal) is final,
// unless it is merely unavailable for now.
func Ask(ctx context.Context, addrs []string, cfg Config, req *wire.Request) (Answer, error) {
	var unsure bool
	var last *NoAnswerError // of the round before
	for {
		missed := &NoAnswerError{}
		for _, addr := range addrs {
			answer, err := askFrom(ctx, addr, cfg, req)
			if err == nil {
				answer.Unsure = unsure
				return answer, nil
			}
			if final(err) {
				return Answer{}, err
			}
			unsure = unsure || errors.Is(err, errUnsure)
			missed.Tries = append(missed.Tries, err)
		}
		if ctx.Err() != nil && last != nil {
			return Answer{}, last // this round was cut short: it does not know why nobody answers
		}
		last = missed
		select {
		case <-ctx.Done():
			return Answer{}, missed
		case <-time.After(retryPause):
		}
	}
}

func final(err error) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.Code != wire.CodeUnavailable || errors.Is(err, ErrNotHoldfast)
}

// errUnsure marks a request that was sent and not answered.
var errUnsure = errors.New("no answer")

// askFrom asks addr, and whom it names instead.
func askFrom(ctx context.Context, addr string, cfg Config, req *wire.Request) (Answer, error) {
	for range maxHops + 1 {
		answer, next, err := askOne(ctx, addr, cfg, req)
		if err != nil {
			return Answer{}, fmt.Errorf("%s: %w", addr, err)
		}
		if answer.Status != wire.StatusMoved {
			return answer, nil
		}
		if next == "" {
			return Answer{}, fmt.Errorf("%s: %w", addr, ErrNoActive)
		}
		addr = next
	}
	return Answer{}, fmt.Errorf("%s: %w: redirected %d times", addr, ErrNoActive, maxHops)
}

// ErrNoActive means that a server answered, but no active one could be found.
var ErrNoActive = errors.New("no active node is known")

// askOne asks the server at addr. next is whom it names if it is not the active.
func askOne(ctx context.Context, addr string, cfg Config, req *wire.Request) (answer Answer, next string, err error) {
	c, err := Dial(ctx, addr, cfg)
	if err != nil {
		return Answer{}, "", err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	defer c.Guard(ctx)()
	c.Queue(req)
	var r wire.Reply
	for {
		if err := c.Next(&r); err != nil {
			return Answer{}, "", fmt.Errorf("%w: %w", errUnsure, err)
		}
		if r.Op == req.Op && r.ID == req.ID && r.Status != wire.StatusPush {
			break
		}
	}
	if r.Status == wire.StatusError {
		return Answer{}, "", refusal(&r)
	}
	return Answer{Status: r.Status, Lease: milliseconds(r.LeaseMS)}, string(r.Addr), nil
}
