package main

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	options := append(f.options(), extra...)
	var lock *client.Lock
	var err error
	switch {
	case f.wait == 0:
		lock, err = c.TryAcquire(ctx, key, options...)
	case f.wait > 0:
		lock, err = c.Acquire(ctx, key, append(options, client.WithWait(f.wait))...)
	default:
		lock, err = c.Acquire(ctx, key, options...)
	}
	if err != nil {
		return nil, f.failure(ctx, key, err)
	}
	return lock, nil
}

// reachPatience is how long a server is looked for: longer than a failover
// takes, short enough for whoever forgot to start one.
const reachPatience = 5 * time.Second

// reach fails if no active can be reached. After that an acquire that waits
// without bound goes on through restarts (see the client's WithPatience).
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
