package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/client"
)

// What a command gets from run, and what acquire prints for eval.
const (
	envKey   = "HOLDFAST_KEY"
	envToken = "HOLDFAST_FENCING_TOKEN"
)

func newAcquire(a *app) *cobra.Command {
	var f lockFlags
	var ticket string
	var format scriptFormat
	cmd := &cobra.Command{
		Use:   "acquire KEY",
		Short: "Take a lock and leave it to a script",
		Long: `Wait in line for the lock on KEY, and print its fencing token once it is granted.

The lock outlives this command: it is held until 'holdfast release', or until
its lease runs out. Nobody extends it meanwhile: choose a lease that is longer
than the work takes, or 'holdfast extend' it in time. To have a lock extended
and released by itself, use 'holdfast run'.

--ticket makes the command safe to repeat: with the same ticket it returns the
same grant, or keeps the same place in line for as long as the server waits for
the ticket's owner (5 seconds as it comes). Take a new ticket for each lock.

--format env prints lines for eval; json prints key, token and lease in seconds.

Exit codes: 0 granted; 75 not granted in time, or taken; 125 no server, or
refused; 128+n ended by signal n while waiting (the request is withdrawn).`,
		Example: `  T=$(holdfast acquire deploy --lease 10m --wait 1m) || exit
  ./deploy.sh --fencing-token "$T"
  holdfast release deploy "$T"

  eval "$(holdfast acquire deploy --lease 10m --try --format env)"
  holdfast release "$HOLDFAST_KEY" "$HOLDFAST_FENCING_TOKEN"`,
		Args: exactArgs("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			var extra []client.AcquireOption
			if ticket != "" {
				t, err := parseTicket(ticket)
				if err != nil {
					return usageError(cmd, err)
				}
				extra = append(extra, client.WithTicket(t))
			}
			return a.acquire(cmd.Context(), &f, args[0], format, extra)
		},
	}
	f.register(cmd, "the server takes the lock back after that long (default the server's, 30s as it comes)")
	cmd.Flags().StringVar(&ticket, "ticket", "", "name of this attempt: a random UUID or 32 hexadecimal digits")
	format.register(cmd)
	return cmd
}

func (a *app) acquire(ctx context.Context, f *lockFlags, key string, format scriptFormat, extra []client.AcquireOption) error {
	c, err := a.connect(f.owner)
	if err != nil {
		return err
	}
	defer c.Close()
	caught, stop := catch(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	defer stop()
	waiting, done := untilSignal(ctx, caught)
	defer done()
	lock, err := f.acquire(waiting, c, key, extra...)
	if err != nil {
		return err
	}
	if isSignal(waiting) { // it came with the grant
		a.release(ctx, lock)
		return f.failure(waiting, key, context.Cause(waiting))
	}
	if err := writeGranted(a.stdout, format, lock); err != nil {
		// Whoever was to get the token did not: nobody could release the lock.
		a.release(ctx, lock)
		return fmt.Errorf("print the token (the lock was released): %w", err)
	}
	a.level.Set(math.MaxInt) // closing the client, it would say that the lock is lost: nobody watches it any more
	return nil
}

func writeGranted(w io.Writer, format scriptFormat, lock *client.Lock) (err error) {
	switch format {
	case formatJSON:
		return writeJSON(w, map[string]any{"status": "granted", "key": lock.Key(), "token": lock.Token(), "lease": leftOf(lock)})
	case formatEnv:
		err = writeEnv(w, lock.Key(), fmt.Sprint(lock.Token()))
	default:
		_, err = fmt.Fprintln(w, lock.Token())
	}
	return err
}

// writeEnv prints key and token for a shell's eval.
func writeEnv(w io.Writer, key, token string) error {
	_, err := fmt.Fprintf(w, "%s=%s\n%s=%s\n", envKey, quoteShell(key), envToken, quoteShell(token))
	return err
}

// leftOf is what is left of the lease, in seconds.
func leftOf(lock *client.Lock) float64 {
	return time.Until(lock.Until()).Truncate(time.Millisecond).Seconds()
}
