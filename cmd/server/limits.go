package main

import "syscall"

// spareDescriptors is for what is not a client: listeners, the log, the data directory, and peers with the reserve in which
// they are recognised.
const spareDescriptors = 128

// connectionLimit returns how many connections can be served: as many as were asked for, unless the process may not
// have that many file descriptors (Go has raised the soft limit to the hard one by now). Refusing a client in so many
// words is better than an accept that fails for want of a descriptor.
func connectionLimit(wanted int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return wanted
	}
	return bounded(wanted, limit.Cur)
}

func bounded(wanted int, descriptors uint64) int {
	if descriptors >= uint64(wanted)+spareDescriptors {
		return wanted
	}
	return int(max(descriptors, spareDescriptors+1) - spareDescriptors)
}
