package node

import (
	"testing"
	"time"
)

// Buckets follow each other without gap or overlap, and none is wider than a
// quarter of what it counts.
func TestBuckets(t *testing.T) {
	for b := range len(waits0) - 1 {
		top := bucketTop(b)
		if bucketOf(top) != b || bucketOf(top+1) != b+1 {
			t.Fatalf("bucket %d ends at %v: bucketOf %d, then %d", b, top, bucketOf(top), bucketOf(top+1))
		}
		if next := bucketTop(b + 1); b > 4 && float64(next-top) > float64(top)/4+1 {
			t.Errorf("bucket %d: %v to %v", b+1, top, next)
		}
	}
	if got := bucketOf(1<<63 - 1); got != len(waits0)-1 {
		t.Errorf("the longest wait is in bucket %d", got)
	}
}

func TestQuantile(t *testing.T) {
	var w waits
	if got := w.quantile(0, 99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	w[bucketOf(time.Second)] = 2
	if got := w.quantile(100, 98); got != 0 {
		t.Errorf("98 of 100 did not wait: %v", got)
	}
	if got := w.quantile(100, 99); got < time.Second || got > 1250*time.Millisecond {
		t.Errorf("the 99th waited a second: %v", got)
	}
}
