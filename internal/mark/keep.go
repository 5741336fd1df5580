package mark

import (
	"context"
	"time"
)

// Ahead is how far ahead of the tokens in use a mark is to reserve: the second until the next one, and a second for a
// disk that is slow to write it.
const Ahead = 2 * time.Second

const (
	period      = time.Second // between two marks
	reportEvery = time.Minute // between two reports of one trouble
)

// Keep stores the mark that ahead names, once a second and whenever moved says
// that it has leapt, until ctx ends. A mark that cannot be stored is tried again a
// second later, and nothing else waits for it: report is told the error at once and each minute that it lasts, and nil
// when marks can be stored again.
func (d *Dir) Keep(ctx context.Context, moved <-chan struct{}, ahead func() uint64, report func(error)) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	var reported time.Time // zero while all is well
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-moved:
		}
		err := d.Store(ahead())
		switch {
		case err == nil && !reported.IsZero():
			reported = time.Time{}
			report(nil)
		case err != nil && time.Since(reported) >= reportEvery:
			reported = time.Now()
			report(err)
		}
	}
}
