//go:build !linux

package native

import "time"

// setUserTimeout does nothing where the kernel has no such option.
func setUserTimeout(uintptr, time.Duration) error { return nil }
