package node

import (
	"context"
	"strings"
	"time"
)

// Filter says what of a feed one wants to know.
type Filter struct {
	Types   []NoticeType // empty = every type
	Prefix  string       // of the key, where a notice has one
	Key     string       // exactly this one, where it has one; "" = any
	Traffic bool         // grants and releases of keys with that prefix too
}

func (f *Filter) fits(one *Notice) bool {
	if one.Type.shelf() == ofTraffic && !f.Traffic {
		return false
	}
	if f.Key != "" && one.Key != f.Key {
		return false
	}
	return f.has(one.Type) && (one.Key == "" || strings.HasPrefix(one.Key, f.Prefix))
}

func (f *Filter) has(t NoticeType) bool {
	for _, one := range f.Types {
		if one == t {
			return true
		}
	}
	return len(f.Types) == 0
}

// Batch is what a subscription has to tell.
type Batch struct {
	Notices []Notice
	Seq     uint64 // as far as the feed was looked at
	Skipped uint64 // grants and releases that were left out since the last batch: too many in a second

	// GapTo, where it is not 0: of the notices from GapFrom to GapTo, some are lost,
	// because they were not taken for too long.
	GapFrom, GapTo uint64
}

func (b *Batch) empty() bool { return len(b.Notices) == 0 && b.Skipped == 0 && b.GapTo == 0 }

// Subscription is one reader's place in a feed. Its methods are called by one
// goroutine at a time, but for Close.
type Subscription struct {
	// Static after construction.
	feed    *Feed
	filter  Filter
	shelves [numShelves]bool // those that the filter takes from

	// Guarded by feed.mu.
	prefix  *prefix // nil: no traffic is asked for
	seen    uint64  // the last notice that was looked at
	gap     uint64  // as told: up to there some are lost
	skipped uint64  // of the prefix, as told
	closed  bool

	// Owned by the reader.
	next time.Time // no batch before
}

const (
	// noticesAtOnce bounds the notices that are looked at under one hold of the
	// mutex, which the lock path may want.
	noticesAtOnce = 256

	// betweenBatches is the least time between two batches: readers then cost a
	// busy node no more than a few wake-ups a second.
	betweenBatches = 50 * time.Millisecond
)

// Subscribe begins to read at what comes next. Every subscription must be
// closed. It fails where too many different prefixes are watched already.
func (f *Feed) Subscribe(filter Filter) (*Subscription, error) {
	s := &Subscription{feed: f, filter: filter}
	for _, t := range NoticeTypes() {
		from := t.shelf()
		s.shelves[from] = s.shelves[from] || filter.has(t) && (from != ofTraffic || filter.Traffic)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.seen = f.seq
	if s.shelves[ofTraffic] {
		p, err := f.watchLocked(filter.Prefix)
		if err != nil {
			return nil, err
		}
		s.prefix, s.skipped = p, p.budget.skipped
	}
	return s, nil
}

// Close ends the subscription: Next must not be called any more. It may be called
// twice.
func (s *Subscription) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if !s.closed && s.prefix != nil {
		s.feed.unwatchLocked(s.prefix)
	}
	s.closed = true
}

// Next waits for something to tell, and for a moment after the last time. An
// error is the cause of ctx's end.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	if err := pause(ctx, time.Until(s.next)); err != nil {
		return Batch{}, err
	}
	for {
		b, changed := s.take()
		if !b.empty() {
			s.next = time.Now().Add(betweenBatches)
			return b, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Batch{}, context.Cause(ctx)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take returns what there is, and what is closed once there is more.
func (s *Subscription) take() (b Batch, changed <-chan struct{}) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	b.GapFrom, b.GapTo = s.gapLocked()
	end, looked := f.seq, 0
	f.forwardLocked(s.seen, func(one *Notice) bool {
		if looked++; looked > noticesAtOnce {
			end, changed = one.Seq-1, always
			return false
		}
		if s.filter.fits(one) {
			b.Notices = append(b.Notices, *one)
		}
		return true
	})
	s.seen, b.Seq = end, end
	if s.prefix != nil {
		b.Skipped = s.prefix.budget.skipped - s.skipped
		s.skipped = s.prefix.budget.skipped
	}
	if changed != nil {
		return b, changed
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return b, f.changed
}

// gapLocked returns between which notices some are lost that nobody told the
// reader of.
func (s *Subscription) gapLocked() (from, to uint64) {
	from = max(s.seen, s.gap) + 1
	for i := range s.feed.shelves {
		if s.shelves[i] {
			to = max(to, s.feed.shelves[i].lost)
		}
	}
	if to < from {
		return 0, 0
	}
	s.gap = to
	return from, to
}

// always is what changed is where there is more to look at already.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
