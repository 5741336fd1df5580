package node

import (
	"math/bits"
	"time"

	"holdfast/internal/locks"
)

// tally counts what the counts by code don't tell. It is guarded by Node.mu.
type tally struct {
	timeouts uint64
	expiries uint64
	grants   uint64 // of counts, when waits was emptied
	waits    waits
}

// add looks at a reply that is about to go. A grant at once, by far the most
// common, costs two comparisons: this is small enough to be inlined.
func (t *tally) add(r *locks.Reply) {
	if r.Waited > 0 || r.Code == locks.NotGranted {
		t.waited(r)
	}
}

func (t *tally) waited(r *locks.Reply) {
	switch {
	case r.Code == locks.Granted:
		t.waits[bucketOf(r.Waited)]++
	case r.Code == locks.NotGranted && !r.Held:
		t.timeouts++
	}
}

// ended counts the end of a grant.
func (t *tally) ended(why locks.Reason) {
	if why == locks.ByExpiry {
		t.expiries++
	}
}

const (
	bucketBits = 2 // four buckets to each doubling: off by a fifth at the most
	octaves    = 40
)

// waits counts waiting times by their size in microseconds.
type waits [octaves << bucketBits]uint32

var waits0 waits

// bucketOf numbers sizes so that larger ones have larger numbers: the octave,
// then the two bits below the leading one.
func bucketOf(d time.Duration) int {
	us := uint64(d / time.Microsecond)
	if us < 1<<bucketBits {
		return int(us)
	}
	octave := bits.Len64(us) - bucketBits
	return min(octave<<bucketBits|int(us>>(octave-1))&(1<<bucketBits-1), len(waits0)-1)
}

// bucketTop is the largest time that a bucket counts.
func bucketTop(b int) time.Duration {
	if b < 1<<bucketBits {
		return time.Duration(b+1)*time.Microsecond - 1
	}
	octave, low := b>>bucketBits, uint64(b&(1<<bucketBits-1))
	return time.Duration((1<<bucketBits|low)+1)<<(octave-1)*time.Microsecond - 1
}

// quantile returns a bound on the given percentage of all grants, most of
// which never waited.
func (w *waits) quantile(grants uint64, percent int) time.Duration {
	var waited uint64
	for _, n := range w {
		waited += uint64(n)
	}
	grants = max(grants, waited)
	if grants == 0 {
		return 0
	}
	rank := (grants*uint64(percent) + 99) / 100 // the first that is not below so many
	seen := grants - waited
	if rank <= seen {
		return 0
	}
	for b, n := range w {
		if seen += uint64(n); rank <= seen {
			return bucketTop(b)
		}
	}
	return 0
}
