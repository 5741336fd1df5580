package replica

import "slices"

// Reign is one entry of a lineage: a state descends from the reign's events up to End.
type Reign struct {
	Epoch Epoch
	End   Seq
	// Since is the seq of the current reign from which on the entry counts. A
	// merge adds the loser's reigns when its last event is in the log: a
	// standby that heard only half of the merge must not claim to descend from
	// the loser, or the loser's state would be thrown away as known.
	Since Seq
}

// maxLineage bounds a lineage. A state that descends from an older reign is
// taken for a stranger's and offered, which costs time but loses nothing.
const maxLineage = 64

// Lineage names the reigns that a state descends from, its own not included,
// in the order of their epochs.
type Lineage []Reign

// covers says whether a state at position at with this lineage contains all
// that a state at p knew.
func (l Lineage) covers(at, p Position) bool {
	if p.IsZero() || p.Epoch == at.Epoch {
		return p.Seq <= at.Seq
	}
	i, ok := l.find(p.Epoch)
	return ok && p.Seq <= l[i].End && at.Seq >= l[i].Since
}

func (l Lineage) find(e Epoch) (int, bool) {
	return slices.BinarySearchFunc(l, e, func(r Reign, e Epoch) int {
		switch {
		case r.Epoch < e:
			return -1
		case r.Epoch > e:
			return 1
		}
		return 0
	})
}

// succeed returns the lineage of the reign that follows a state at p with lineage l.
func (l Lineage) succeed(p Position) Lineage {
	next := make(Lineage, 0, len(l)+1)
	for _, r := range l {
		if r.Since <= p.Seq {
			next = append(next, Reign{Epoch: r.Epoch, End: r.End})
		}
	}
	if p.IsZero() {
		return next
	}
	return next.with(Reign{Epoch: p.Epoch, End: p.Seq})
}

// merged returns l with the reigns of a state at p with lineage other, which
// count from since on.
func (l Lineage) merged(p Position, other Lineage, since Seq) Lineage {
	all := slices.Clone(l)
	for _, r := range other.succeed(p) {
		r.Since = since
		all = all.with(r)
	}
	return all
}

// with returns l and r: of one epoch, the later end. It may change l.
func (l Lineage) with(r Reign) Lineage {
	if i, ok := l.find(r.Epoch); !ok {
		l = slices.Insert(l, i, r)
	} else if r.End > l[i].End {
		l[i] = r
	}
	if len(l) > maxLineage {
		l = slices.Delete(l, 0, len(l)-maxLineage)
	}
	return l
}
