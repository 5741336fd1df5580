package bench

import (
	"crypto/rand"
	"encoding/binary"

	"holdfast/wire"
)

const (
	keyBytes = 16
	runBytes = 5 // of a key: they tell runs apart
)

// keySpace makes the keys and tickets of one run. Its random start keeps runs
// that load one server at the same time out of each other's way.
type keySpace struct {
	start [runBytes]byte
	seed  uint32
}

func newKeySpace() keySpace {
	var k keySpace
	copy(k.start[:], "b"+rand.Text()) // crypto/rand never fails
	var seed [4]byte
	rand.Read(seed[:])
	k.seed = binary.BigEndian.Uint32(seed[:])
	return k
}

// put writes key number n: the start and eleven hexadecimal digits.
func (k *keySpace) put(key *[keyBytes]byte, n int) {
	copy(key[:], k.start[:])
	for i := keyBytes - 1; i >= runBytes; i-- {
		key[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
}

// ticket is unique within the run and hardly met outside of it; the run trusts
// itself, so it need not be unpredictable.
func (k *keySpace) ticket(slot int, n uint64) (t wire.Ticket) {
	binary.BigEndian.PutUint32(t[:], k.seed)
	binary.BigEndian.PutUint32(t[4:], uint32(slot))
	binary.BigEndian.PutUint64(t[8:], n)
	return t
}
