package locks

// Records live in slabs: arrays without pointers, addressed by number, so that
// the garbage collector has nothing to look at (a cycle over a million keys
// took 113 ms with pointers, under 1 ms without) and growing copies nothing.
// Number 0 means "none" everywhere.

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
	chunkMask = chunkSize - 1
	noSlot    = 0xffff
)

// chunk says what is free in one array of records. Chunks with room form a
// list, most recently freed into first, so that a freed record is taken again
// while it is warm.
type chunk struct {
	used       int
	free       uint16 // first free slot, noSlot if none
	prev, next int32  // neighbours in the list of chunks with room, -1 at its ends
	link       [chunkSize]uint16
}

type slab[T any] struct {
	recs   []*[chunkSize]T // arrays of their own: with anything beside them they would not fill their memory pages
	chunks []*chunk        // nil, and the array too: given back to the runtime, the number is taken again
	holes  []int32         // numbers of nil chunks
	room   int32           // first chunk with room, -1 if none
	n      int             // records in use
}

func newSlab[T any]() slab[T] { return slab[T]{room: -1} }

func (s *slab[T]) at(id uint32) *T {
	return &s.recs[id>>chunkBits][id&chunkMask]
}

// alloc takes a zeroed record.
func (s *slab[T]) alloc() uint32 {
	if s.room < 0 {
		s.addChunk()
	}
	ci := s.room
	c := s.chunks[ci]
	slot := c.free
	c.free = c.link[slot]
	c.used++
	s.n++
	if c.free == noSlot {
		s.unlist(ci)
	}
	var zero T
	s.recs[ci][slot] = zero
	return uint32(ci)<<chunkBits | uint32(slot)
}

// release gives a record back. A chunk that becomes empty goes back to the
// runtime, unless it is the only one with room.
func (s *slab[T]) release(id uint32) {
	ci := int32(id >> chunkBits)
	c := s.chunks[ci]
	full := c.free == noSlot
	slot := uint16(id & chunkMask)
	c.link[slot] = c.free
	c.free = slot
	c.used--
	s.n--
	if full {
		s.list(ci)
	}
	if c.used == 0 && (s.room != ci || c.next >= 0) {
		s.unlist(ci)
		s.chunks[ci], s.recs[ci] = nil, nil
		s.holes = append(s.holes, ci)
	}
}

func (s *slab[T]) addChunk() {
	c := &chunk{}
	for i := range c.link {
		c.link[i] = uint16(i + 1)
	}
	c.link[chunkSize-1] = noSlot
	var ci int32
	if n := len(s.holes); n > 0 {
		ci = s.holes[n-1]
		s.holes = s.holes[:n-1]
	} else {
		ci = int32(len(s.chunks))
		s.chunks = append(s.chunks, nil)
		s.recs = append(s.recs, nil)
	}
	if ci == 0 {
		c.used, c.free = 1, 1 // number 0 is never handed out
	}
	s.chunks[ci], s.recs[ci] = c, new([chunkSize]T)
	s.list(ci)
}

func (s *slab[T]) list(ci int32) {
	c := s.chunks[ci]
	c.prev, c.next = -1, s.room
	if s.room >= 0 {
		s.chunks[s.room].prev = ci
	}
	s.room = ci
}

func (s *slab[T]) unlist(ci int32) {
	c := s.chunks[ci]
	if c.prev >= 0 {
		s.chunks[c.prev].next = c.next
	} else {
		s.room = c.next
	}
	if c.next >= 0 {
		s.chunks[c.next].prev = c.prev
	}
}
