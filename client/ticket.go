package client

import (
	"crypto/rand"
	"sync"

	"holdfast/wire"
)

// ticketSource makes tickets. It draws 32 at a time, since asking the system
// for 16 bytes costs more than the rest of a request. (A virtual machine that
// is cloned while running may share up to 31 of them with its twin.)
type ticketSource struct {
	mu   sync.Mutex
	buf  [32 * wire.TicketBytes]byte
	left int // bytes of buf, from its end, that were not handed out
}

func (s *ticketSource) next() (t wire.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t.IsZero() { // zero means none
		if s.left == 0 {
			rand.Read(s.buf[:]) // never fails: it ends the program instead
			s.left = len(s.buf)
		}
		at := s.buf[len(s.buf)-s.left:]
		copy(t[:], at)
		clear(at[:wire.TicketBytes]) // handed out: not ours to keep
		s.left -= wire.TicketBytes
	}
	return t
}
