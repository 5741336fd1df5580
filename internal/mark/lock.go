package mark

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const lockName = "lock"

// lockDir takes the directory for this process. The kernel lets go of the lock when the process ends, however it
// ends, so a lock file that is left behind means nothing. The number in it is for people.
func lockDir(path string) (*os.File, error) {
	name := filepath.Join(path, lockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w%s", path, ErrInUse, owner(name)), f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	// A disk too full for five digits is no reason not to start.
	if f.Truncate(0) == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, nil
}

// owner names the process that has the lock, as far as its file tells.
func owner(name string) string {
	pid, err := os.ReadFile(name)
	if err != nil || len(strings.TrimSpace(string(pid))) == 0 {
		return ""
	}
	return ", number " + strings.TrimSpace(string(pid))
}
