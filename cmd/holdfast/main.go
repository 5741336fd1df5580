// Command holdfast takes and gives back locks for people and scripts, runs a
// command under a lock, and measures a server. docs/cli.md describes it.
package main

import (
	"context"
	"io"
	"os"
)

// version is set by the linker (see the Makefile).
var version string

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	a := newApp(environ, stdout, stderr)
	root := newRoot(a)
	root.SetArgs(args)
	return a.exit(root.ExecuteContext(ctx))
}
