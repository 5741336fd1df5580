package replica

import (
	"reflect"
	"testing"
)

func TestLineageCovers(t *testing.T) {
	// The reign 30 followed 20 at seq 7, 20 followed 10 at seq 5; at 30/4 a state of 25/9 was merged.
	l := Lineage{}.succeed(Position{10, 5}).succeed(Position{20, 7}).merged(Position{25, 9}, Lineage{{Epoch: 20, End: 8}}, 4)
	for _, c := range []struct {
		at, p Position
		want  bool
	}{
		{Position{30, 4}, Position{}, true},
		{Position{30, 4}, Position{30, 4}, true},
		{Position{30, 4}, Position{30, 5}, false},
		{Position{30, 4}, Position{10, 5}, true},
		{Position{30, 4}, Position{10, 6}, false},
		{Position{30, 4}, Position{15, 1}, false},
		{Position{30, 4}, Position{25, 9}, true},
		{Position{30, 4}, Position{25, 10}, false},
		{Position{30, 3}, Position{25, 9}, false}, // half of the merge
		{Position{30, 4}, Position{20, 8}, true},  // by way of the merged state
	} {
		if got := l.covers(c.at, c.p); got != c.want {
			t.Errorf("a state at %v with %v covers %v: %v", c.at, l, c.p, got)
		}
	}
}

func TestLineageOfHalfAMerge(t *testing.T) {
	l := Lineage{{Epoch: 10, End: 5}}.merged(Position{25, 9}, nil, 4)
	if got, want := l.succeed(Position{30, 3}), (Lineage{{10, 5, 0}, {30, 3, 0}}); !reflect.DeepEqual(got, want) {
		t.Errorf("after half a merge %v, want %v", got, want)
	}
	if got, want := l.succeed(Position{30, 4}), (Lineage{{10, 5, 0}, {25, 9, 0}, {30, 4, 0}}); !reflect.DeepEqual(got, want) {
		t.Errorf("after the merge %v, want %v", got, want)
	}
}

func TestLineageIsBounded(t *testing.T) {
	var l Lineage
	for e := Epoch(1); e < 200; e++ {
		l = l.succeed(Position{e, 1})
	}
	if len(l) != maxLineage || l[0].Epoch != 200-maxLineage {
		t.Errorf("%d reigns from %d on", len(l), l[0].Epoch)
	}
}
