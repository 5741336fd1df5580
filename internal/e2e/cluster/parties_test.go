//go:build linux

package cluster

import (
	"context"
	"errors"
	"time"
)

// party is a client of any kind that finds the active by itself and goes on through failovers.
type party interface {
	// acquire waits for the key. The attempt has all that the client was told; the hold can be used afterwards.
	acquire(ctx context.Context, key string, lease time.Duration) (*attempt, hold, error)
	close()
}

// hold is what a party can do with a key that it was granted. repeated says that an earlier sending of the same
// request may have been carried out.
type hold interface {
	release(ctx context.Context) (holds, repeated bool, err error)
	extend(ctx context.Context, lease time.Duration) (holds, repeated bool, err error)
}

// errGaveUp is how long a client tries: beyond it something is broken that no promise excuses.
var errGaveUp = errors.New("no node has served for too long")

// pause is a client's pause between two tries.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

const (
	redialPause = 5 * time.Millisecond
	dialLimit   = 300 * time.Millisecond
)
