package node

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/locks"
)

// Feed is what has happened at a node lately, for people who look: a bounded
// memory, in which every reader keeps its own place. To add to it costs the same
// however many read, and however slowly: readers that fall behind find a gap.
//
// Grants and releases are kept only while somebody watches a prefix of their
// key, and only so many a second.
//
// Lock order: Node.mu before Feed.mu.
type Feed struct {
	watched atomic.Int32 // prefixes that are watched: lets the lock path look without the mutex

	mu       sync.Mutex // guards what follows
	seq      uint64
	shelves  [numShelves]ring
	budgets  [numNoticeTypes]budget
	traffic  budget
	prefixes []*prefix
	changed  chan struct{} // closed at the next notice; nil: nobody waits for one
}

// prefix is one that somebody watches.
type prefix struct {
	text    string
	readers int
	budget  budget
}

// Feed returns the node's feed.
func (n *Node) Feed() *Feed { return &n.feed }

// Note adds to the feed what an edge knows: refused auth tokens, connections
// above a limit, operators' actions. It may be called by any goroutine, under
// Node.mu too.
func (n *Node) Note(one Notice) {
	n.feed.add(n.clock.wall(n.clock.now()), one, nil)
}

// add keeps a notice, unless too many of its type came in this second. A key in
// bytes is copied only if it is kept.
func (f *Feed) add(at time.Time, one Notice, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.Type.shelf() != ofCluster {
		b := &f.budgets[one.Type]
		if !b.room(at, mostPerSecond) {
			b.skipped++
			return
		}
		b.used++
		one.Skipped, b.skipped = b.skipped, 0
	}
	if key != nil {
		one.Key = string(key)
	}
	f.keepLocked(at, one)
}

func (f *Feed) keepLocked(at time.Time, one Notice) {
	f.seq++
	one.Seq, one.At = f.seq, at
	s := one.Type.shelf()
	f.shelves[s].push(one, shelfSize[s])
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// addTraffic keeps a grant or a release if a prefix of its key is watched.
func (f *Feed) addTraffic(at time.Time, one Notice, key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var fits [mostPrefixes]*prefix
	n, room := 0, false
	for _, p := range f.prefixes {
		if len(key) >= len(p.text) && string(key[:len(p.text)]) == p.text {
			fits[n] = p
			n++
			room = p.budget.room(at, mostPerPrefix) || room
		}
	}
	if n == 0 {
		return
	}
	keep := room && f.traffic.room(at, mostTraffic)
	for _, p := range fits[:n] {
		if keep {
			p.budget.used++
		} else {
			p.budget.skipped++
		}
	}
	if keep {
		f.traffic.used++
		one.Key = string(key)
		f.keepLocked(at, one)
	}
}

// Since returns what came after the notice of that number, oldest first and at
// most max of it. It can't tell what is not kept any more: see Subscribe.
func (f *Feed) Since(seq uint64, max int) []Notice {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Notice
	f.forwardLocked(seq, func(one *Notice) bool {
		if len(all) == max {
			return false
		}
		all = append(all, *one)
		return true
	})
	return all
}

// Recent returns what fits the filter, newest first and at most max of it. A
// filter with Traffic finds what others have watched.
func (f *Feed) Recent(filter Filter, max int) []Notice {
	var all []Notice
	for before := uint64(math.MaxUint64); before > 0 && len(all) < max; {
		f.mu.Lock()
		before = f.backwardLocked(before, noticesAtOnce, func(one *Notice) {
			if len(all) < max && filter.fits(one) {
				all = append(all, *one)
			}
		})
		f.mu.Unlock()
	}
	return all
}

// backwardLocked calls fn for the last n notices before seq, newest first, and
// returns the last one's number; 0 where there are no more.
func (f *Feed) backwardLocked(seq uint64, n int, fn func(*Notice)) uint64 {
	var left [numShelves]int
	for s := range left {
		left[s] = f.shelves[s].after(seq - 1)
	}
	for range n {
		var last *Notice
		from := 0
		for s := range left {
			if left[s] == 0 {
				continue
			}
			if one := f.shelves[s].at(left[s] - 1); last == nil || one.Seq > last.Seq {
				last, from = one, s
			}
		}
		if last == nil {
			return 0
		}
		fn(last)
		left[from]--
		seq = last.Seq
	}
	return seq
}

// forwardLocked calls fn for what is kept and came after seq, in order, until it
// returns false.
func (f *Feed) forwardLocked(seq uint64, fn func(*Notice) bool) {
	var at [numShelves]int
	for s := range at {
		at[s] = f.shelves[s].after(seq)
	}
	for {
		var next *Notice
		from := 0
		for s := range at {
			if at[s] == len(f.shelves[s].kept) {
				continue
			}
			if one := f.shelves[s].at(at[s]); next == nil || one.Seq < next.Seq {
				next, from = one, s
			}
		}
		if next == nil || !fn(next) {
			return
		}
		at[from]++
	}
}

// watchLocked adds a reader of a prefix.
func (f *Feed) watchLocked(text string) (*prefix, error) {
	i := slices.IndexFunc(f.prefixes, func(p *prefix) bool { return p.text == text })
	if i < 0 {
		if len(f.prefixes) == mostPrefixes {
			return nil, fmt.Errorf("%d different prefixes are watched already: watch one of them, or without a prefix", mostPrefixes)
		}
		i = len(f.prefixes)
		f.prefixes = append(f.prefixes, &prefix{text: strings.Clone(text)})
		f.watched.Store(int32(len(f.prefixes)))
	}
	f.prefixes[i].readers++
	return f.prefixes[i], nil
}

func (f *Feed) unwatchLocked(p *prefix) {
	if p.readers--; p.readers > 0 {
		return
	}
	f.prefixes = slices.DeleteFunc(f.prefixes, func(other *prefix) bool { return other == p })
	f.watched.Store(int32(len(f.prefixes)))
}

// ring keeps the last notices of one shelf.
type ring struct {
	kept []Notice
	head int    // the oldest, once it is full
	lost uint64 // Seq of the last one that was pushed out
}

func (r *ring) push(one Notice, size int) {
	if len(r.kept) < size {
		r.kept = append(r.kept, one)
		return
	}
	r.lost = r.kept[r.head].Seq
	r.kept[r.head] = one
	r.head = (r.head + 1) % size
}

// at returns the i-th oldest.
func (r *ring) at(i int) *Notice { return &r.kept[(r.head+i)%len(r.kept)] }

// after returns which is the oldest after seq.
func (r *ring) after(seq uint64) int {
	lo, hi := 0, len(r.kept)
	for lo < hi {
		if mid := (lo + hi) / 2; r.at(mid).Seq <= seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// feedAtLocked is the time by which notices are dated.
func (n *Node) feedAtLocked(now locks.Time) time.Time { return n.clock.wall(now) }
