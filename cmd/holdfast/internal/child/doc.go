// Package child runs one command as a child process of this one, passes
// signals on to it and waits until it, and all that it started, is gone.
//
// The command stays in this process's own process group, as with sudo, env or
// nice: pipelines, Ctrl-Z, fg and reading from the terminal work as if it had
// been started directly. What the terminal sends (Ctrl-C, Ctrl-\) reaches both
// at once, so it must not be passed on a second time: see FromTerminal.
//
// On Linux this process becomes the subreaper of the command's descendants:
// those that outlive their parent become children of this process, so that it
// can wait for them and signal them without any process group.
package child
