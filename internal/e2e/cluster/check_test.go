//go:build linux

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"
)

// check fails the test if the history breaks a promise.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, finding := range h.findingsLocked() {
		if i == 20 {
			t.Error("and more")
			break
		}
		t.Error(finding)
	}
	t.Logf("%d grants and %d verdicts checked", len(h.attempts), len(h.verdicts))
}

// findingsLocked is every promise that the history breaks.
func (h *history) findingsLocked() (all []string) {
	all = append(all, h.unique()...)
	byKey := map[string][]*attempt{}
	var keys []string
	for _, a := range h.attempts {
		if byKey[a.key] == nil {
			keys = append(keys, a.key)
		}
		byKey[a.key] = append(byKey[a.key], a)
	}
	slices.Sort(keys)
	for _, key := range keys {
		all = append(all, h.order(byKey[key])...)
		all = append(all, h.exclusion(byKey[key])...)
	}
	return append(all, h.losses()...)
}

// unique: no token is issued twice, whatever happens.
func (h *history) unique() (all []string) {
	seen := map[uint64]*attempt{}
	for _, a := range h.attempts {
		if b := seen[a.token]; b != nil {
			all = append(all, fmt.Sprintf("token %d was issued twice: %v, and %v", a.token, b, a))
		}
		seen[a.token] = a
	}
	return all
}

// inLine is when an attempt surely stood in line, or was granted. A place that was taken while less was promised does
// not count: it may have been lost, or the request was parked.
func (h *history) inLine(a *attempt) instant {
	if a.read == 0 || !a.ticket {
		return a.granted
	}
	for _, f := range h.faults {
		if f.from <= a.read && a.read <= f.to {
			return a.granted
		}
	}
	return min(a.read, a.granted)
}

// order: an attempt that stood in line before another one of its key was asked for has the smaller token. So tokens
// rise, and whoever came first is served first.
func (h *history) order(key []*attempt) (all []string) {
	slices.SortFunc(key, func(a, b *attempt) int { return cmp.Compare(a.token, b.token) })
	// Of those with higher tokens, the one that was first in line: the one most likely passed over.
	var first *attempt
	for _, a := range slices.Backward(key) {
		if h.unordered(a) {
			continue
		}
		if first != nil && h.inLine(first) < a.asked {
			all = append(all, fmt.Sprintf("key %q out of order: %v was asked for when %v stood in line already", a.key, a, first))
		}
		if first == nil || h.inLine(a) < h.inLine(first) {
			first = a
		}
	}
	return all
}

// unordered says whether the order of an attempt is not promised: it was granted while two nodes may have served.
func (h *history) unordered(a *attempt) bool {
	return slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.kind == split && a.asked <= f.to && a.granted >= f.from
	})
}

// until is when a hold that was not given up ends at the earliest: its lease may have begun as soon as it was asked for.
func (a *attempt) until() instant {
	end := max(a.asked+instant(a.lease), a.granted)
	if a.ended != 0 {
		end = min(end, a.ended)
	}
	return end
}

// exclusion: no two hold a key at once.
func (h *history) exclusion(key []*attempt) (all []string) {
	slices.SortFunc(key, func(a, b *attempt) int { return cmp.Compare(a.granted, b.granted) })
	var last *attempt // of those before, the one that is held longest
	for _, a := range key {
		if h.shaky(a.granted) {
			continue
		}
		if last != nil && a.granted < last.until() {
			all = append(all, fmt.Sprintf("key %q has two holders: %v while %v", a.key, a, last))
		}
		if last == nil || a.until() > last.until() {
			last = a
		}
	}
	return all
}

// shaky says whether what was answered then may be lost.
func (h *history) shaky(at instant) bool {
	return slices.ContainsFunc(h.faults, func(f fault) bool { return f.kind != freeze && f.kind != place && f.from <= at && at <= f.to })
}

// losses: a hold that was answered and has not ended is nobody's but its holder's, and one that was released, and
// answered so, never comes back.
func (h *history) losses() (all []string) {
	holds := map[uint64]*attempt{}
	for _, a := range h.attempts {
		holds[a.token] = a
	}
	until := map[uint64]instant{}    // the end of the lease, at the earliest
	released := map[uint64]instant{} // when that was answered
	slices.SortStableFunc(h.verdicts, func(a, b verdict) int { return cmp.Compare(a.asked, b.asked) })
	for _, v := range h.verdicts {
		a := holds[v.token]
		if a == nil || h.shaky(a.granted) {
			continue
		}
		if until[v.token] == 0 {
			until[v.token] = a.asked + instant(a.lease)
		}
		gone := released[v.token]
		switch {
		case v.holds && gone != 0 && gone < v.asked:
			all = append(all, fmt.Sprintf("key %q: the hold of %v is back at %v, it was released at %v",
				a.key, a, time.Duration(v.answered), time.Duration(gone)))
		case v.holds && v.release && !h.shaky(v.answered):
			released[v.token] = v.answered
		case v.holds && !v.release && !h.shaky(v.answered):
			until[v.token] = v.asked + instant(v.lease)
		case v.holds: // nobody knows whether it lasts
			delete(holds, v.token)
		case v.release && v.repeated: // the earlier sending may have done it
			released[v.token] = v.answered
		case gone == 0 && v.answered < until[v.token]:
			all = append(all, fmt.Sprintf("key %q: the hold of %v is lost: it was denied at %v", a.key, a, time.Duration(v.answered)))
		}
	}
	return all
}

func (a *attempt) String() string {
	return fmt.Sprintf("%d (%s, by %q, asked %v, granted %v, ended %v)", a.token, a.client, a.node,
		time.Duration(a.asked), time.Duration(a.granted), time.Duration(a.ended))
}
