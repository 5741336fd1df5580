package locks

// MaxEnded bounds the ended set: a peer that stays away for longer than that
// many ends may bring back what it missed.
const MaxEnded = 1_000_000

// endedStep is how many of the oldest go at once where the set is full, so
// that a full set does not cost an event per release.
const endedStep = MaxEnded / 64

// endedSet records the tokens whose grants ended other than by running out, in
// the order in which that was decided. Places are numbered from 1 on and never
// anew, so that peers can acknowledge how far they have them: first <= place <
// next are kept, in pages that go as soon as all their places are trimmed.
type endedSet struct {
	pages       []*endedPage // pages[0] is page number base; nil entries do not occur
	base        uint64       // place >> chunkBits of pages[0]
	first, next uint64
	spare       *endedPage // the last page that went: appending and trimming in step must not allocate
}

type endedPage [chunkSize]Token

func newEndedSet() endedSet { return endedSet{first: 1, next: 1} }

// at is a place; first <= i < next.
func (s *endedSet) at(i uint64) *Token { return &s.pages[i>>chunkBits-s.base][i&chunkMask] }

func (s *endedSet) append(token Token) {
	if len(s.pages) == 0 {
		s.base = s.next >> chunkBits
	}
	if s.next>>chunkBits-s.base == uint64(len(s.pages)) {
		page := s.spare
		if s.spare = nil; page == nil {
			page = new(endedPage)
		}
		s.pages = append(s.pages, page)
	}
	s.next++
	*s.at(s.next - 1) = token
}

// begin moves first: up to forget, or, where the set is empty, down to make
// room for what a snapshot will fill in. Holes are token 0.
func (s *endedSet) begin(first uint64) {
	if first < s.first {
		s.base, s.pages = first>>chunkBits, nil
		for p := s.base; p <= (s.next-1)>>chunkBits; p++ {
			s.pages = append(s.pages, new(endedPage))
		}
	}
	s.first = first
	for len(s.pages) > 0 && s.base < first>>chunkBits {
		s.spare, s.pages[0] = s.pages[0], nil
		s.pages = s.pages[1:]
		s.base++
	}
}

// takes says whether e, an event of another node, fits the set.
func (s *endedSet) takes(e *Event) bool {
	switch e.Kind {
	case EventEnded:
		return e.Token != 0 && e.Index < s.next
	case EventTrim: // down only where nothing is recorded yet
		return e.Index > 0 && e.Index <= s.next && s.next-e.Index <= MaxEnded+endedStep &&
			(e.Index >= s.first || s.first == s.next)
	}
	return e.Index < 1<<62 // EventClear: the places after it must have numbers too
}

// fold is the ended set's part of folding an event.
func (s *endedSet) fold(e *Event) {
	switch {
	case e.Kind == EventEnd && e.Reason != ByExpiry, e.Kind == EventEnded && e.Index == 0:
		s.append(e.Token)
	case e.Kind == EventEnded && e.Index >= s.first: // others were trimmed while the snapshot came
		*s.at(e.Index) = e.Token
	case e.Kind == EventTrim:
		s.begin(e.Index)
	case e.Kind == EventClear:
		*s = endedSet{first: max(e.Index, 1), next: max(e.Index, 1)}
	}
}

// Ended says which places of the ended set are kept: first <= place < next.
func (t *Table) Ended() (first, next uint64) { return t.ended.first, t.ended.next }

// TrimEnded forgets the ended tokens before the place upto: every peer has
// acknowledged them.
func (t *Table) TrimEnded(upto uint64, fx *Effects) {
	if upto = min(upto, t.ended.next); upto > t.ended.first {
		t.ev = Event{Kind: EventTrim, Index: upto}
		t.commit(0, place{}, fx)
	}
}

// boundEnded lets the oldest go where the ended set is full.
func (t *Table) boundEnded(fx *Effects) {
	if t.ended.next-t.ended.first > MaxEnded {
		t.TrimEnded(t.ended.first+endedStep, fx)
	}
}
