package main

import "testing"

func TestMemoryIsReturnedOnceItIsNotNeeded(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name       string
		last       memoryMark
		have, need int
		want       bool
	}{
		{"a small server is left alone", memoryMark{}, 20 * mb, 0, false},
		{"what stands needs it", memoryMark{}, 300 * mb, 200 * mb, false},
		{"the locks have gone", memoryMark{}, 300 * mb, mb, true},
		{"nothing changed since it was tried", memoryMark{300 * mb, mb}, 301 * mb, mb, false},
		{"it has grown since", memoryMark{60 * mb, mb}, 100 * mb, mb, true},
		{"what was needed then has gone", memoryMark{60 * mb, 50 * mb}, 60 * mb, 0, true},
	} {
		if got := c.last.worthwhile(c.have, c.need); got != c.want {
			t.Errorf("%s: worthwhile(%d, %d) after %+v is %v", c.name, c.have, c.need, c.last, got)
		}
	}
	if memoryHeld() < mb {
		t.Error("the runtime says that it has less than a megabyte")
	}
}
