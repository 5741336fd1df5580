package locks

// deadlines is a 4-ary heap of the instants at which claims end. It gives the
// exact next deadline; a timing wheel measured the same and does not. Its
// arrays come in pages so that growing copies nothing.
//
// Order: by instant, at one instant holders before waiters (a lease that ends
// may still serve a wait that ends), then in the order in which the deadlines
// were set.
type deadlines struct {
	pages []*deadlinePage
	n     uint32
	set   uint32 // numbers the deadlines as they are set
}

type deadline struct {
	at  int64 // instant·2, +1 for a waiter
	seq uint32
	id  uint32 // the claim
}

type deadlinePage [chunkSize]deadline

func (a *deadline) before(b *deadline) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return int32(a.seq-b.seq) < 0 // the count may wrap around
}

// shift keeps the four children of a deadline side by side in one line of the
// processor's cache: they stand at a multiple of four.
const shift = 3

func (h *deadlines) slot(i uint32) *deadline {
	i += shift
	return &h.pages[i>>chunkBits][i&chunkMask]
}

// children returns the four places of which the first is deadline i's.
func (h *deadlines) children(i uint32) *[4]deadline {
	i += shift
	at := i & chunkMask
	return (*[4]deadline)(h.pages[i>>chunkBits][at : at+4])
}

// next returns the first instant at which something ends, or Never.
func (h *deadlines) next() Time {
	if h.n == 0 {
		return Never
	}
	return Time(h.slot(0).at >> 1)
}

// setDeadline puts claim id under its end, moves it there, or takes it out if
// it has none.
func (t *Table) setDeadline(id uint32) {
	h, c := &t.deadlines, t.claims.at(id)
	end := c.end()
	if end == Never {
		t.clearDeadline(id)
		return
	}
	d := deadline{at: int64(end) << 1, id: id}
	if c.state == waiting {
		d.at++
	}
	if c.heap != 0 && h.slot(c.heap-1).at == d.at {
		return
	}
	h.set++
	d.seq = h.set
	i := c.heap - 1
	if c.heap == 0 {
		i = h.n
		if int((i+shift)>>chunkBits) == len(h.pages) {
			h.pages = append(h.pages, &deadlinePage{})
		}
		h.n++
	}
	t.siftDown(t.siftUp(i, d), d)
}

func (t *Table) clearDeadline(id uint32) {
	h, c := &t.deadlines, t.claims.at(id)
	if c.heap == 0 {
		return
	}
	i := c.heap - 1
	c.heap = 0
	h.n--
	if i != h.n {
		last := *h.slot(h.n)
		t.siftDown(t.siftUp(i, last), last)
	}
	if pages := int((h.n+shift)>>chunkBits) + 1; len(h.pages) > pages+1 {
		h.pages[len(h.pages)-1] = nil
		h.pages = h.pages[:len(h.pages)-1]
	}
}

// siftUp finds d's place at or above i, moving others down; nothing is written
// for d itself.
func (t *Table) siftUp(i uint32, d deadline) uint32 {
	h := &t.deadlines
	for i > 0 {
		p := (i - 1) / 4
		up := h.slot(p)
		if !d.before(up) {
			break
		}
		*h.slot(i) = *up
		t.claims.at(up.id).heap = i + 1
		i = p
	}
	return i
}

// siftDown puts d at its place at or below i.
func (t *Table) siftDown(i uint32, d deadline) {
	h := &t.deadlines
	for {
		first := 4*i + 1
		if first >= h.n {
			break
		}
		four, least := h.children(first), uint32(0)
		for k := uint32(1); k < min(4, h.n-first); k++ {
			if four[k].before(&four[least]) {
				least = k
			}
		}
		down := &four[least]
		if !down.before(&d) {
			break
		}
		*h.slot(i) = *down
		t.claims.at(down.id).heap = i + 1
		i = first + least
	}
	*h.slot(i) = d
	t.claims.at(d.id).heap = i + 1
}
