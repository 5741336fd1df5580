package locks

// Place returns the place in line of a session's oldest waiter under ref, as
// position has it; 0 = none waits.
func (t *Table) Place(s Session, ref uint64) uint32 {
	id := t.findRef(s, ref)
	if id == 0 {
		return 0
	}
	return t.position(t.claims.at(id))
}
