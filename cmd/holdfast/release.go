package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/session"
	"holdfast/wire"
)

// askPatience is how long release and extend look for an active.
const askPatience = 5 * time.Second

func newRelease(a *app) *cobra.Command {
	var format scriptFormat
	cmd := &cobra.Command{
		Use:   "release KEY TOKEN",
		Short: "Give a lock back",
		Long: `Give back the lock on KEY that was granted with TOKEN. It goes to whoever
waits first.

The token is all that is needed: any process on any machine may release. While
no server answers, the release is tried again for 5 seconds.

Exit codes: 0 released; 76 TOKEN does not hold KEY (its lease ran out, it was
released before, or it never did); 125 no server, or refused.`,
		Example: `  T=$(holdfast acquire deploy) && ./deploy.sh; holdfast release deploy "$T"`,
		Args:    exactArgs("KEY", "TOKEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := a.ask(cmd.Context(), wire.OpRelease, args, 0)
			if err != nil {
				return err
			}
			if answer.Status != wire.StatusReleased && !answer.Unsure {
				return notHeld(args)
			}
			return writeReleased(a.stdout, format, args[0])
		},
	}
	format.register(cmd)
	return cmd
}

// writeReleased prints nothing as text, like other commands that take away.
func writeReleased(w io.Writer, format scriptFormat, key string) error {
	switch format {
	case formatJSON:
		return writeJSON(w, map[string]any{"status": "released", "key": key})
	case formatEnv:
		_, err := fmt.Fprintf(w, "unset %s %s\n", envKey, envToken)
		return err
	}
	return nil
}

func newExtend(a *app) *cobra.Command {
	var format scriptFormat
	var lease time.Duration
	cmd := &cobra.Command{
		Use:   "extend KEY TOKEN",
		Short: "Let a lease run longer, or shorter",
		Long: `Set the lease of the lock on KEY that was granted with TOKEN: it runs out that
long from now, be it later or earlier than before. Prints the new lease.

Exit codes: 0 extended; 76 TOKEN does not hold KEY; 125 no server, or refused
(a lease above the server's maximum).`,
		Example: `  holdfast extend deploy "$T" --lease 10m`,
		Args:    exactArgs("KEY", "TOKEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDuration("lease", lease); err != nil {
				return usageError(cmd, err)
			}
			answer, err := a.ask(cmd.Context(), wire.OpExtend, args, lease)
			if err != nil {
				return err
			}
			if answer.Status != wire.StatusExtended {
				return notHeld(args)
			}
			return writeExtended(a.stdout, format, args, answer.Lease)
		},
	}
	cmd.Flags().DurationVar(&lease, "lease", 0, "new lease, from now (default the server's, 30s as it comes)")
	format.register(cmd)
	return cmd
}

func writeExtended(w io.Writer, format scriptFormat, args []string, lease time.Duration) (err error) {
	switch format {
	case formatJSON:
		return writeJSON(w, map[string]any{"status": "extended", "key": args[0], "lease": lease.Seconds()})
	case formatEnv:
		err = writeEnv(w, args[0], args[1])
	default:
		_, err = fmt.Fprintln(w, lease)
	}
	return err
}

func notHeld(args []string) error {
	return exitWith(exitLost, fmt.Errorf("token %s does not hold %q: its lease ran out, it was released, or it never did", args[1], args[0]))
}

// ask sends a release or an extend of args, which are key and token.
func (a *app) ask(ctx context.Context, op wire.Op, args []string, lease time.Duration) (session.Answer, error) {
	token, err := parseToken(args[1])
	if err != nil {
		return session.Answer{}, err
	}
	if err := wire.CheckKey([]byte(args[0])); err != nil {
		return session.Answer{}, err
	}
	t, err := a.target("")
	if err != nil {
		return session.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	answer, err := session.Ask(ctx, t.addrs, t.session, &wire.Request{
		Op: op, ID: 1, Key: []byte(args[0]), Token: token, LeaseMS: uint32(lease.Milliseconds()),
	})
	if err != nil {
		return answer, withAdvice(err)
	}
	return answer, nil
}

// withAdvice adds to an error from package session what to do about it.
func withAdvice(err error) error {
	var refused *session.Refusal
	switch {
	case errors.As(err, &refused) && refused.Code == wire.CodeUnauthenticated:
		return fmt.Errorf("%w\n%s", err, adviceAuth)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w\n%s", err, adviceNoServer)
	}
	return err
}

const (
	adviceAuth     = "Name the auth token's file with --auth-token-file or " + envAuthTokenFile + ", or set " + envAuthToken + "."
	adviceMismatch = "All who use a key at one time must agree on --slots and --shared."
	adviceNoServer = "No server listens there: start one with 'holdfastd', or name another with --addr or " + envAddrs + "."
)
