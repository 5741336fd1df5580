//go:build !linux

package link

// setNotSent does nothing where the kernel has no such option.
func setNotSent(uintptr, int) error { return nil }
