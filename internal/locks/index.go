package locks

// index finds records by hash: a table of chains that grows and shrinks by one
// chain at a time (linear hashing: W. Litwin, "Linear Hashing: a new tool for
// file and table addressing", 1980), so that no insert ever pays for a whole
// rehash. It holds record numbers only; the caller compares the records.
//
// Records of one hash are met in the order in which they were inserted, and
// removing one costs the same however many share its hash: a client may give a
// thousand waiters the same number.
type index struct {
	heads [][]uint32         // pages of chain heads
	nodes []*[chunkSize]node // by record number, parallel to the slab it indexes
	used  []int              // records in each page of nodes
	spare *[chunkSize]node   // the last page that emptied: a lone record that comes and goes must not allocate each time
	size  uint32             // chains in use
	low   uint32             // largest power of two <= size
	n     uint32             // records
}

// node chains records. The head's prev is the tail; the tail's next is 0.
type node struct{ hash, next, prev uint32 }

const minChains = 64

func newIndex() index {
	x := index{size: minChains, low: minChains}
	x.heads = append(x.heads, make([]uint32, chunkSize))
	return x
}

func (x *index) chain(hash uint32) uint32 {
	b := hash & (2*x.low - 1)
	if b >= x.size {
		b = hash & (x.low - 1)
	}
	return b
}

func (x *index) head(chain uint32) *uint32 { return &x.heads[chain>>chunkBits][chain&chunkMask] }
func (x *index) node(id uint32) *node      { return &x.nodes[id>>chunkBits][id&chunkMask] }

// first returns the first record of that hash, 0 if there is none.
func (x *index) first(hash uint32) uint32 {
	id := *x.head(x.chain(hash))
	for id != 0 {
		n := x.node(id)
		if n.hash == hash {
			return id
		}
		id = n.next
	}
	return 0
}

// next returns the record of the same hash that was inserted after id.
func (x *index) next(id uint32) uint32 {
	n := x.node(id)
	hash := n.hash
	for id = n.next; id != 0; id = n.next {
		n = x.node(id)
		if n.hash == hash {
			return id
		}
	}
	return 0
}

func (x *index) insert(id, hash uint32) {
	p := int(id >> chunkBits)
	for len(x.nodes) <= p {
		x.nodes = append(x.nodes, nil)
		x.used = append(x.used, 0)
	}
	if x.nodes[p] == nil {
		x.nodes[p], x.spare = x.spare, nil
		if x.nodes[p] == nil {
			x.nodes[p] = new([chunkSize]node)
		}
	}
	x.used[p]++
	x.node(id).hash = hash
	x.link(id, x.chain(hash))
	x.n++
	if x.n > x.size {
		x.grow()
	}
}

func (x *index) remove(id uint32) {
	x.unlink(id, x.chain(x.node(id).hash))
	p := id >> chunkBits
	x.used[p]--
	x.n--
	if x.used[p] == 0 {
		x.nodes[p], x.spare = nil, x.nodes[p]
	}
	// Four for one: from a quarter full, the chains are gone when the records are.
	for i := 0; i < 4 && x.size > minChains && x.n < x.size/4; i++ {
		x.shrink()
	}
}

// link appends id to a chain.
func (x *index) link(id, chain uint32) {
	h, n := x.head(chain), x.node(id)
	n.next = 0
	if *h == 0 {
		*h, n.prev = id, id
		return
	}
	first := x.node(*h)
	n.prev = first.prev
	x.node(first.prev).next = id
	first.prev = id
}

func (x *index) unlink(id, chain uint32) {
	h, n := x.head(chain), x.node(id)
	switch {
	case *h == id && n.next == 0:
		*h = 0
	case *h == id:
		*h = n.next
		x.node(n.next).prev = n.prev
	case n.next == 0:
		x.node(n.prev).next = 0
		x.node(*h).prev = n.prev
	default:
		x.node(n.prev).next = n.next
		x.node(n.next).prev = n.prev
	}
}

// grow splits one chain in two.
func (x *index) grow() {
	from, to := x.size-x.low, x.size
	if int(to>>chunkBits) == len(x.heads) {
		x.heads = append(x.heads, make([]uint32, chunkSize))
	}
	x.size++
	mask := 2*x.low - 1
	if x.size == 2*x.low {
		x.low = x.size
	}
	id := *x.head(from)
	*x.head(from) = 0
	for id != 0 {
		n := x.node(id)
		next := n.next
		x.link(id, n.hash&mask)
		id = next
	}
}

// shrink joins the last chain to the one that it was split from.
func (x *index) shrink() {
	x.size--
	if x.size < x.low {
		x.low /= 2
	}
	id := *x.head(x.size)
	*x.head(x.size) = 0
	for id != 0 {
		n := x.node(id)
		next := n.next
		x.link(id, x.chain(n.hash))
		id = next
	}
	if pages := int((x.size + chunkSize - 1) >> chunkBits); len(x.heads) > pages+1 {
		x.heads[len(x.heads)-1] = nil
		x.heads = x.heads[:len(x.heads)-1]
	}
}
