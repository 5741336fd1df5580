package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Take locks from a Holdfast server",
		Long: `Take locks from a Holdfast server, run commands under them, and measure a server.

A lock has a key, a lease (after which the server takes it back by itself) and
a fencing token: a number that rises with every grant, so that a resource can
refuse whoever comes with an older one.

Results go to standard output, everything else to standard error.

Exit codes: 0 done; 75 not acquired in time; 76 not held, or lost; 125 holdfast
itself failed (usage, no server, refused); 128+n ended by signal n. Commands
with others say so in their help.`,
		Example: `  holdfast run nightly-report --try -- ./report.sh     only one at a time, on any machine
  T=$(holdfast acquire deploy --lease 10m --wait 1m)   for scripts
  holdfast release deploy "$T"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A script whose command name got lost must not go on as if all was well.
			return errors.Join(cmd.Help(), exitWith(exitFailure, nil))
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(usageError)
	flags := root.PersistentFlags()
	a.conn.register(flags)
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "errors only: no warnings, and no word when a lock is taken")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log what happens to the connections")
	root.AddCommand(
		newAcquire(a), newRelease(a), newExtend(a), newRun(a),
		newPing(a), newBench(a), newVersion(a),
	)
	return root
}

// usageError adds where help is to be found.
func usageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())
}

// exactArgs demands the arguments that the command's usage line names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageError(cmd, fmt.Errorf("%s is missing", strings.Join(names[len(args):], " and ")))
		case len(args) > len(names):
			return usageError(cmd, fmt.Errorf("unexpected argument %q", args[len(names)]))
		}
		return nil
	}
}
