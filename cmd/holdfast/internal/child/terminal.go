//go:build unix

package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// FromTerminal reports whether sig must be taken as one that the terminal sent
// to the whole foreground process group, and so to the command as well. Nobody
// can tell who sent a signal that Go's runtime received; in the foreground of a
// terminal, SIGINT, SIGQUIT and SIGWINCH practically always come from there.
func FromTerminal(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH:
		return inForeground()
	}
	return false
}

// inForeground reports whether this process's group is the foreground group of
// its controlling terminal.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false // no terminal
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
