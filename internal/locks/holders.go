package locks

// The holders of one key form a pairing heap by the end of their leases
// (Fredman, Sedgewick, Sleator and Tarjan, "The pairing heap", 1986), so that
// a request on a semaphore with thousands of holders finds the ones that are
// due without looking at the others. An exclusive holder is the whole heap.

// endsBefore orders two claims as the deadlines do. Both have one.
func (t *Table) endsBefore(a, b *claim) bool {
	return t.deadlines.slot(a.heap - 1).before(t.deadlines.slot(b.heap - 1))
}

// meld joins two heaps and returns the root. Neither root has siblings.
func (t *Table) meld(a, b uint32) uint32 {
	if a == 0 {
		return b
	}
	if b == 0 {
		return a
	}
	ca, cb := t.claims.at(a), t.claims.at(b)
	if t.endsBefore(cb, ca) {
		a, b, ca, cb = b, a, cb, ca
	}
	cb.next, cb.prev = ca.child, a
	if ca.child != 0 {
		t.claims.at(ca.child).prev = b
	}
	ca.child = b
	return a
}

func (t *Table) addHolder(e *entry, id uint32) {
	c := t.claims.at(id)
	c.next, c.prev, c.child = 0, 0, 0
	e.root = t.meld(e.root, id)
	e.holders++
}

func (t *Table) removeHolder(e *entry, id uint32) {
	e.holders--
	c := t.claims.at(id)
	if id == e.root {
		e.root = t.meldSiblings(c.child)
	} else {
		t.cut(c, id)
		e.root = t.meld(e.root, t.meldSiblings(c.child))
	}
	c.next, c.prev, c.child = 0, 0, 0
}

// moveHolder restores the order after the deadline of holder id was changed.
func (t *Table) moveHolder(e *entry, id uint32) {
	if e.holders == 1 {
		return
	}
	t.removeHolder(e, id)
	t.addHolder(e, id)
}

// cut takes a holder that is not the root, with all below it, out of the heap.
func (t *Table) cut(c *claim, id uint32) {
	if p := t.claims.at(c.prev); p.child == id {
		p.child = c.next
	} else {
		p.next = c.next
	}
	if c.next != 0 {
		t.claims.at(c.next).prev = c.prev
	}
}

// meldSiblings joins a list of siblings in the two passes that give the heap
// its bound: in pairs from the left, then all from the right.
func (t *Table) meldSiblings(first uint32) uint32 {
	var pairs uint32 // the results of the first pass, last first, linked by next
	for first != 0 {
		a := first
		ca := t.claims.at(a)
		b := ca.next
		ca.next, ca.prev = 0, 0
		if b == 0 {
			first = 0
		} else {
			cb := t.claims.at(b)
			first = cb.next
			cb.next, cb.prev = 0, 0
			a = t.meld(a, b)
		}
		t.claims.at(a).next = pairs
		pairs = a
	}
	var root uint32
	for pairs != 0 {
		a := pairs
		ca := t.claims.at(a)
		pairs = ca.next
		ca.next = 0
		root = t.meld(root, a)
	}
	return root
}

// eachHolder calls fn for the holders of a key, in no order of meaning, until
// it returns false. It walks by the links, up the prev of the first siblings.
func (t *Table) eachHolder(e *entry, fn func(id uint32, c *claim) bool) {
	id := e.root
	for id != 0 {
		c := t.claims.at(id)
		if !fn(id, c) {
			return
		}
		if c.child != 0 {
			id = c.child
			continue
		}
		for id != e.root && c.next == 0 {
			id = t.parent(id)
			c = t.claims.at(id)
		}
		if id == e.root {
			return
		}
		id = c.next
	}
}

// parent returns the holder that id stands under.
func (t *Table) parent(id uint32) uint32 {
	for {
		p := t.claims.at(id).prev
		if t.claims.at(p).child == id {
			return p
		}
		id = p
	}
}

// findHolder returns the holder of key with that token, 0 if there is none.
func (t *Table) findHolder(eid uint32, token Token) uint32 {
	e := t.entries.at(eid)
	if e.root == 0 {
		return 0
	}
	if e.holders == 1 {
		if t.claims.at(e.root).id == uint64(token) {
			return e.root
		}
		return 0
	}
	for id := t.byToken.first(t.hashToken(token)); id != 0; id = t.byToken.next(id) {
		if c := t.claims.at(id); c.id == uint64(token) && c.entry == eid {
			return id
		}
	}
	return 0
}

// findTicket returns the claim of key with that ticket, 0 if there is none.
func (t *Table) findTicket(eid uint32, ticket Ticket) uint32 {
	if ticket.IsZero() {
		return 0
	}
	if r := t.entries.at(eid).root; r != 0 && t.claims.at(r).ticket == ticket {
		return r
	}
	for id := t.byTicket.first(t.hashTicket(eid, ticket)); id != 0; id = t.byTicket.next(id) {
		if c := t.claims.at(id); c.entry == eid && c.ticket == ticket {
			return id
		}
	}
	return 0
}
