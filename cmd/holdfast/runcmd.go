package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"holdfast/client"
	"holdfast/cmd/holdfast/internal/child"
)

// passedOn are the signals that a running command gets from holdfast.
var passedOn = []syscall.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
	unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
}

// secrets are removed from the command's environment: the command has no part
// in this program's, or the server's, authority.
var secrets = []string{
	envAuthToken, envAuthTokenFile, "HOLDFAST_TOKENS_FILE", "HOLDFAST_CLUSTER_SECRET", "HOLDFAST_CLUSTER_SECRET_FILE",
}

// maxHold is beyond any command's life: run holds a lock for as long as its
// command runs.
const maxHold = 100 * 365 * 24 * time.Hour

// lostPolicy is what happens to a command that has lost its lock.
type lostPolicy string

const (
	lostTerm   lostPolicy = "term"
	lostKill   lostPolicy = "kill"
	lostIgnore lostPolicy = "ignore"
)

// runFlags are those of run.
type runFlags struct {
	lock      lockFlags
	onLost    lostPolicy
	killAfter time.Duration
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run KEY -- CMD [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait in line for the lock on KEY, run CMD, and give the lock back when CMD and
everything that it started has ended. The lease is extended all the while.

CMD gets HOLDFAST_KEY and HOLDFAST_FENCING_TOKEN; variables with Holdfast's
secrets are removed from its environment.

Signals (HUP, INT, QUIT, TERM, USR1, USR2, ALRM, WINCH) are passed on to CMD.
While waiting for the lock they withdraw the request and end holdfast instead.
CMD stays in holdfast's process group, so Ctrl-C, Ctrl-Z and pipelines work as
if it had been started directly; what the terminal sent is not sent again.

If the lock is lost while CMD runs (no server for a whole lease, released by an
operator, holdfast stopped for too long), --on-lost says what happens: term
(SIGTERM, and SIGKILL after --kill-after), kill, or ignore. The same happens,
without the second step, when holdfast itself is killed (Linux).

Exit codes: CMD's own; 75 not granted in time, or taken; 76 lost while CMD ran;
125 holdfast itself failed; 126 CMD is not executable; 127 CMD was not found;
128+n CMD, or the wait, was ended by signal n.`,
		Example: `  holdfast run nightly-report --try -- ./report.sh
  holdfast run deploy --wait 10m --lease 15s -- make deploy
  holdfast run gpu --slots 4 -- python train.py
  holdfast run db-schema --on-lost kill -- sh -c './migrate --fence "$HOLDFAST_FENCING_TOKEN"'`,
		Args: runArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			return a.run(cmd.Context(), &f, args[0], args[1:])
		},
	}
	f.register(cmd)
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	f.lock.register(cmd, "lose the lock after that long without a server; extended at a third of it\n(default the server's, 30s as it comes)")
	f.onLost = lostTerm
	allowed := []string{string(lostTerm), string(lostKill), string(lostIgnore)}
	oneOf{(*string)(&f.onLost), allowed}.register(cmd, "on-lost", "", "what CMD gets when its lock is lost")
	cmd.Flags().DurationVar(&f.killAfter, "kill-after", 5*time.Second, "with --on-lost term: SIGKILL that long after SIGTERM")
}

func (f *runFlags) check(cmd *cobra.Command, key string) error {
	if f.killAfter < 0 {
		return usageError(cmd, fmt.Errorf("--kill-after: %v; 0 or more", f.killAfter))
	}
	return f.lock.check(cmd, key)
}

// runArgs wants the dashes, so that no flag of CMD is ever taken for one of ours.
func runArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0 || dash == 0:
		return usageError(cmd, errors.New("KEY is missing"))
	case dash != 1:
		return usageError(cmd, fmt.Errorf("put -- between KEY and the command: %s %s -- CMD", cmd.CommandPath(), args[0]))
	case len(args) == 1:
		return usageError(cmd, errors.New("the command after -- is missing"))
	}
	return nil
}

func (a *app) run(ctx context.Context, f *runFlags, key string, argv []string) error {
	path, err := child.Find(argv[0]) // before the wait, which would be in vain
	if err != nil {
		return startFailure(err)
	}
	c, err := a.connect(f.lock.owner)
	if err != nil {
		return err
	}
	defer c.Close()
	caught, stop := catch(passedOn...)
	defer stop()
	waiting, done := untilSignal(ctx, caught)
	lock, err := f.lock.acquire(waiting, c, key, client.WithAutoExtend(), client.WithMaxHold(maxHold))
	done()
	if err != nil {
		return err
	}
	if isSignal(waiting) { // it came with the grant
		a.release(ctx, lock)
		return f.lock.failure(waiting, key, context.Cause(waiting))
	}
	process, err := child.Start(&child.Command{
		Path: path, Args: argv, Env: commandEnv(a.environ, lock), DeathSignal: f.onLost.deathSignal(),
	})
	if err != nil {
		a.release(ctx, lock)
		return startFailure(err)
	}
	r := runner{app: a, flags: f, lock: lock, caught: caught, process: process}
	status := r.supervise()
	return r.finish(ctx, status)
}

// deathSignal is what CMD gets when holdfast dies, and with it whoever extends
// the lock.
func (p lostPolicy) deathSignal() syscall.Signal {
	switch p {
	case lostTerm:
		return unix.SIGTERM
	case lostKill:
		return unix.SIGKILL
	}
	return 0
}

func startFailure(err error) error {
	switch {
	case errors.Is(err, child.ErrNotFound):
		return exitWith(exitNotFound, err)
	case errors.Is(err, child.ErrNotExecutable):
		return exitWith(exitNotExecutable, err)
	}
	return err
}

// commandEnv is environ without secrets and with the lock. An entry of an
// enclosing run is replaced.
func commandEnv(environ []string, lock *client.Lock) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == envKey || name == envToken || slices.Contains(secrets, name)
	})
	return append(env, envKey+"="+lock.Key(), fmt.Sprintf("%s=%d", envToken, lock.Token()))
}
