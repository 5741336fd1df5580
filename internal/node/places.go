package node

// Places appends to dst the place in line of each of the session's waiters that
// wait under these refs, 0 for those who do not: for front ends that tell their
// clients now and then. A call costs the lock path a look-up for each.
func (s *Session) Places(refs []uint64, dst []uint32) []uint32 {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	for _, ref := range refs {
		dst = append(dst, s.node.table.Place(s.id, ref))
	}
	return dst
}
