package client

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"sync"

	"holdfast/wire"
)

// ticketSource makes tickets: the key stream of AES in counter mode, a batch at
// a time, under a key from crypto/rand that is replaced after 1,024 tickets.
// Asking the system for the bytes of a ticket costs 140 ns, in whatever
// portions. (A virtual machine that is cloned while running may share what is
// left of a key with its twin.)
type ticketSource struct {
	mu     sync.Mutex
	batch  [64 * wire.TicketBytes]byte
	left   int // bytes of batch, from its start, that were not handed out; the rest is zero
	stream cipher.Stream
	keyed  int // batches before the next key
}

const batchesPerKey = 16

func (s *ticketSource) next() (t wire.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t.IsZero() { // zero means none
		if s.left == 0 {
			s.refill()
		}
		s.left -= wire.TicketBytes
		last := s.batch[s.left:][:wire.TicketBytes]
		t = wire.Ticket(last)
		clear(last) // handed out: not ours to keep
	}
	return t
}

func (s *ticketSource) refill() {
	if s.keyed == 0 {
		s.rekey()
	}
	s.stream.XORKeyStream(s.batch[:], s.batch[:])
	s.left = len(s.batch)
	s.keyed--
}

func (s *ticketSource) rekey() {
	var seed [16 + aes.BlockSize]byte
	rand.Read(seed[:]) // never fails: it ends the program instead
	block, err := aes.NewCipher(seed[:16])
	if err != nil {
		panic("AES-128 takes 16 bytes: " + err.Error())
	}
	s.stream, s.keyed = cipher.NewCTR(block, seed[16:]), batchesPerKey
}
