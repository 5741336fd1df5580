package main

import (
	"fmt"
	"runtime"
)

const usage = `holdfastd runs one Holdfast node.

  holdfastd                  start the node; SIGTERM or SIGINT stops it in order, a second one at once;
                             SIGHUP reads the secrets and the log level anew from their files
  holdfastd --check-config   print the settings that count, where each came from, and every problem
  holdfastd healthcheck      ask the node on this machine whether it is ready: exit code 0 or 1
  holdfastd --version        print the version
  holdfastd --help           print this

Settings are environment variables named HOLDFAST_…; none is required. docs/configuration.md lists them.

Exit codes: 0 stopped in order, 1 could not start or stop in order, 2 a mistake in the configuration or on the command line.
`

func versionLine() string {
	return fmt.Sprintf("holdfastd %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// parseArgs names what is to be done: "serve", "check-config", "healthcheck", "version" or "help".
func parseArgs(args []string) (command string, err error) {
	if len(args) == 0 {
		return "serve", nil
	}
	commands := map[string]string{
		"--check-config": "check-config", "healthcheck": "healthcheck",
		"--version": "version", "--help": "help", "-h": "help",
	}
	command, known := commands[args[0]]
	if !known {
		return "", fmt.Errorf("unknown argument %q: settings are environment variables", args[0])
	}
	if len(args) > 1 {
		return "", fmt.Errorf("%s takes no argument, but there is %q", args[0], args[1])
	}
	return command, nil
}
