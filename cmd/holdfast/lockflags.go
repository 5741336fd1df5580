package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/wire"
)

// lockFlags say how acquire and run want the lock.
type lockFlags struct {
	lease  time.Duration
	wait   time.Duration // -1 = without bound, 0 = do not wait
	try    bool
	slots  int
	shared bool
	owner  string
}

func (f *lockFlags) register(cmd *cobra.Command, leaseUsage string) {
	flags := cmd.Flags()
	flags.DurationVar(&f.lease, "lease", 0, leaseUsage)
	flags.DurationVar(&f.wait, "wait", -1, "wait in line at most that long; 0 = do not wait (default without bound)")
	flags.BoolVar(&f.try, "try", false, "do not wait: the same as --wait 0")
	flags.IntVar(&f.slots, "slots", 0, "let so many hold the key at once; all must name the same number (default 1)")
	flags.BoolVar(&f.shared, "shared", false, "share the key with others that also say --shared")
	flags.StringVar(&f.owner, "owner", "", "label that people see beside the lock (default host/process:pid)")
	flags.Lookup("wait").DefValue = "0s" // pflag's "zero": it prints no default of its own
}

// check judges what was given, key included.
func (f *lockFlags) check(cmd *cobra.Command, key string) error {
	given := cmd.Flags().Changed
	switch {
	case f.try && given("wait"):
		return usageError(cmd, errors.New("--try and --wait: give one of them"))
	case f.shared && given("slots"):
		return usageError(cmd, errors.New("--shared and --slots: give one of them; a semaphore has no shared mode"))
	case f.try:
		f.wait = 0
	}
	if err := wire.CheckKey([]byte(key)); err != nil {
		return usageError(cmd, err)
	}
	if given("wait") {
		if err := checkDuration("wait", f.wait); err != nil {
			return usageError(cmd, err)
		}
	}
	if err := checkDuration("lease", f.lease); err != nil {
		return usageError(cmd, err)
	}
	if given("slots") && (f.slots < 1 || f.slots > math.MaxUint16) {
		return usageError(cmd, fmt.Errorf("--slots: %d; 1 to %d", f.slots, math.MaxUint16))
	}
	return nil
}

// options are those of the client's acquire, wait excepted.
func (f *lockFlags) options() []client.AcquireOption {
	options := []client.AcquireOption{client.WithLease(f.lease)}
	if f.slots > 0 {
		options = append(options, client.WithSlots(f.slots))
	}
	if f.shared {
		options = append(options, client.Shared())
	}
	return options
}

// acquire waits for the lock as the flags say. Its error carries an exit code.
func (f *lockFlags) acquire(ctx context.Context, c *client.Client, key string, extra ...client.AcquireOption) (*client.Lock, error) {
	if err := reach(ctx, c); err != nil {
		return nil, f.failure(ctx, key, err)
	}
	options := f.options()
	var lock *client.Lock
	var err error
	switch {
	case f.wait == 0:
		lock, err = c.TryAcquire(ctx, key, append(options, extra...)...)
	case f.wait > 0:
		lock, err = f.acquireWithin(ctx, c, key, options, extra)
	default:
		lock, err = c.Acquire(ctx, key, append(options, extra...)...)
	}
	if err != nil {
		return nil, f.failure(ctx, key, err)
	}
	return lock, nil
}

// acquireWithin goes on through restarts of the server until the wait is over,
// as the client by itself does only for a wait without bound. The ticket keeps
// the place in line; one in extra takes precedence.
func (f *lockFlags) acquireWithin(ctx context.Context, c *client.Client, key string, options, extra []client.AcquireOption) (*client.Lock, error) {
	var ticket [16]byte
	rand.Read(ticket[:]) // never fails
	options = slices.Concat(options, []client.AcquireOption{client.WithTicket(ticket)}, extra)
	last := time.Now().Add(f.wait)
	for left := f.wait; ; left = time.Until(last) {
		lock, err := c.Acquire(ctx, key, slices.Concat(options, []client.AcquireOption{client.WithWait(left)})...)
		if !errors.Is(err, client.ErrNoActive) || time.Until(last) <= retryPause {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retryPause):
		}
	}
}

// retryPause is how long a server that went away is left alone.
const retryPause = 200 * time.Millisecond

// reachPatience is how long a server is looked for: longer than a failover
// takes, short enough for whoever forgot to start one.
const reachPatience = 5 * time.Second

// reach fails if no active can be reached. A wait that has begun is not ended
// by that any more.
func reach(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, reachPatience)
	defer cancel()
	return c.Ready(ctx)
}

// failure gives err its exit code and says what to do.
func (f *lockFlags) failure(ctx context.Context, key string, err error) error {
	var caught *signalError
	switch {
	case errors.As(context.Cause(ctx), &caught):
		return exitWith(exitSignal+int(caught.signal), fmt.Errorf("%v while waiting for %q: withdrawn", caught, key))
	case errors.Is(err, client.ErrNotAcquired) && f.wait == 0:
		return exitWith(exitNotAcquired, fmt.Errorf("%q is taken", key))
	case errors.Is(err, client.ErrNotAcquired) && f.wait > 0:
		return exitWith(exitNotAcquired, fmt.Errorf("%q was not granted within %v", key, f.wait))
	case errors.Is(err, client.ErrNotAcquired):
		return exitWith(exitNotAcquired, err)
	case errors.Is(err, client.ErrUnauthorized):
		return fmt.Errorf("%w\n%s", err, adviceAuth)
	case errors.Is(err, client.ErrMismatch):
		return fmt.Errorf("%w\n%s", err, adviceMismatch)
	case errors.Is(err, client.ErrNoActive), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w\n%s", err, adviceNoServer)
	}
	return err
}

// connect makes the client that acquire and run use.
func (a *app) connect(owner string) (*client.Client, error) {
	t, err := a.target(owner)
	if err != nil {
		return nil, err
	}
	options := []client.Option{
		client.WithLogger(a.logger()), client.WithPatience(),
		client.WithAuthToken(t.session.AuthToken),
	}
	if owner != "" {
		options = append(options, client.WithOwner(owner))
	}
	if t.session.TLS != nil {
		options = append(options, client.WithTLS(t.session.TLS))
	}
	return client.New(t.addrs, options...)
}
