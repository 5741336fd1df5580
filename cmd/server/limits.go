package main

import "syscall"

// spareDescriptors is for what is not a client: listeners, the log, the data directory.
const spareDescriptors = 64

// descriptors returns how many file descriptors the process may have (Go has raised the soft limit to the hard one by
// now), and whether they are enough for that many connections.
func descriptors(connections int) (have uint64, enough bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, true // nothing is known, so there is nothing to warn of
	}
	return limit.Cur, limit.Cur >= uint64(connections)+spareDescriptors
}
