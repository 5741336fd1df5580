package native

import (
	"hash/maphash"
	"slices"
)

// ref is what an acquire is called in the table: the client's id in the low 32
// bits, so that a reply needs no look-up; above it a count of the connection's
// acquires, since clients may reuse an id (all of ordered mode is id 0); and in
// the highest bit, whether it was asked with TRY because the connection had no
// room for one that waits. Other requests are called by their id alone.
type ref uint64

const triedBit ref = 1 << 63

func makeRef(count, id uint32) ref { return ref(count)<<32&^triedBit | ref(id) }

func (r ref) id() uint32 { return uint32(r) }

// before says whether r was sent before s. It is right as long as no acquire
// waits while a billion others are made on its connection.
func (r ref) before(s ref) bool { return int32(uint32(r>>32)<<1-uint32(s>>32)<<1) < 0 }

// pending knows the acquires of one connection that are not answered: the
// queued ones, and in ordered mode those behind them. A client that numbers its
// requests pays for the ones that have to queue, nothing for the others.
//
// It is needed to find what a cancel means, to keep the answers of ordered mode
// in order, to bound what one connection may have pending, and to answer
// everything when the node stops.
type pending struct {
	queued int               // acquires that wait in the table
	peak   int               // highest queued since the maps were made
	byID   map[uint32]waits  // queued acquires with an id other than 0
	keys   map[uint64]uint32 // queued acquires, those of ordered mode too, by the hash of their key

	cancels []cancelling // the table's answers to them come in this order
	leaving bool         // withdrawn acquires are answered "moved"

	order ordered
}

// cancelling is a cancel that the table has not answered yet. The table's reply
// names the acquire, not the cancel.
type cancelling struct {
	id    uint32
	quiet bool // no client asked: the node stops
}

func (p *pending) nextCancel() cancelling {
	c := p.cancels[0]
	p.cancels = p.cancels[1:]
	return c
}

// waits are the queued acquires of one id: usually one.
type waits struct {
	first ref
	more  *fifo
}

// keySeed makes the hashes of keys unpredictable.
var keySeed = maphash.MakeSeed()

// queue notes that an acquire waits in the table.
func (p *pending) queue(r ref, key []byte) {
	if p.keys == nil {
		p.keys = make(map[uint64]uint32)
	}
	p.keys[maphash.Bytes(keySeed, key)]++
	p.queued++
	p.peak = max(p.peak, p.queued)
	if r.id() == 0 {
		p.order.queue(r, key)
		return
	}
	if p.byID == nil {
		p.byID = make(map[uint32]waits)
	}
	w, taken := p.byID[r.id()]
	if !taken {
		p.byID[r.id()] = waits{first: r}
		return
	}
	if w.more == nil {
		w.more = new(fifo)
		p.byID[r.id()] = w
	}
	w.more.push(sent{ref: r})
}

// settle notes that an acquire is answered, and reports whether it was queued.
func (p *pending) settle(r ref, key []byte) bool {
	if p.queued == 0 {
		return false
	}
	if r.id() == 0 {
		if !p.order.waits(r, key) { // it stays in its line, for its answer
			return false
		}
	} else if !p.forget(r) {
		return false
	}
	p.queued--
	h := maphash.Bytes(keySeed, key)
	if p.keys[h]--; p.keys[h] == 0 {
		delete(p.keys, h)
	}
	if p.queued == 0 && p.peak > 64 {
		p.keys, p.byID, p.peak = nil, nil, 0 // a map never shrinks
	}
	return true
}

// forget takes a queued acquire with an id out.
func (p *pending) forget(r ref) bool {
	w, ok := p.byID[r.id()]
	if !ok {
		return false
	}
	if w.first != r {
		if w.more == nil {
			return false
		}
		s := w.more.find(r)
		if s == nil || s.done {
			return false
		}
		s.done = true
		return true
	}
	if w.first, ok = w.following(); ok {
		p.byID[r.id()] = w
	} else {
		delete(p.byID, r.id())
	}
	return true
}

// following takes the next acquire of the same id.
func (w *waits) following() (ref, bool) {
	for w.more != nil && !w.more.empty() {
		s := *w.more.first()
		w.more.pop()
		if !s.done {
			return s.ref, true
		}
	}
	return 0, false
}

// oldest returns the oldest queued acquire of an id other than 0.
func (p *pending) oldest(id uint32) (ref, bool) {
	w, ok := p.byID[id]
	return w.first, ok
}

// waitsFor says whether an acquire of that key is queued.
func (p *pending) waitsFor(key []byte) bool {
	return p.queued > 0 && p.keys[maphash.Bytes(keySeed, key)] > 0
}

// all returns every queued acquire in the order in which they were sent.
func (p *pending) all() []ref {
	refs := make([]ref, 0, p.queued)
	for _, w := range p.byID {
		refs = append(refs, w.first)
		if w.more != nil {
			refs = w.more.appendWaiting(refs)
		}
	}
	for _, l := range p.order.lines {
		refs = l.appendWaiting(refs)
	}
	slices.SortFunc(refs, func(a, b ref) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return refs
}
