package native

// fifo holds acquires in the order in which they were sent. Each is found by a
// binary search, never a scan, and the first is taken without moving the others.
type fifo struct {
	items []sent
	head  int // items before it were taken
}

// sent is one acquire. done: nothing is to be waited for any more.
type sent struct {
	ref  ref
	done bool
}

// push adds r, which was sent after all the others.
func (f *fifo) push(s sent) { f.items = append(f.items, s) }

// find returns r's item, nil if it is not there. The pointer is good until the
// next push or pop.
func (f *fifo) find(r ref) *sent {
	lo, hi := f.head, len(f.items)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if f.items[mid].ref.before(r) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(f.items) || f.items[lo].ref != r {
		return nil
	}
	return &f.items[lo]
}

func (f *fifo) empty() bool { return f.head == len(f.items) }

func (f *fifo) first() *sent { return &f.items[f.head] }

func (f *fifo) last() *sent { return &f.items[len(f.items)-1] }

// pop takes the first item out.
func (f *fifo) pop() {
	f.head++
	if f.head >= 16 && f.head > len(f.items)/2 {
		f.items = append(f.items[:0], f.items[f.head:]...)
		f.head = 0
	}
}

// appendWaiting appends the acquires that are not done.
func (f *fifo) appendWaiting(refs []ref) []ref {
	for _, s := range f.items[f.head:] {
		if !s.done {
			refs = append(refs, s.ref)
		}
	}
	return refs
}
