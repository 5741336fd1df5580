package link

import (
	"encoding/binary"
	"fmt"
)

const (
	lengthBytes = 4

	// pieceBytes bounds a WebSocket message: what control waits for while a piece
	// of bulk is on its way out.
	pieceBytes = 64 << 10

	// maxControlBytes and maxBulkBytes bound one message. The machine's longest
	// are a hello or an offer, with names, addresses and a lineage, and a chunk
	// of 4 MiB with a lineage, or of one key: it is never cut, and may have
	// 200,000 waiters. What a length promises takes no memory before it is there.
	maxControlBytes = 64 << 10
	maxBulkBytes    = 128 << 20

	// keptBytes is how large a buffer may be and stay.
	keptBytes = 256 << 10
)

// assembler puts the messages of one stream together again.
type assembler struct {
	max     int    // bytes of a message
	partial []byte // of a message with its length, never all of it
}

// feed takes in a piece and calls each with the messages that are whole by now,
// which it lends.
func (a *assembler) feed(piece []byte, each func(msg []byte)) error {
	for len(piece) > 0 {
		var head [lengthBytes]byte
		have := copy(head[:], a.partial)
		if have += copy(head[have:], piece); have < lengthBytes {
			a.partial = append(a.partial, piece...)
			return nil
		}
		n := uint64(binary.BigEndian.Uint32(head[:]))
		if n > uint64(a.max) {
			return fmt.Errorf("a message of %d bytes; at most %d", n, a.max)
		}
		piece = a.message(int(n)+lengthBytes, piece, each)
	}
	return nil
}

// message goes on with a message of size bytes, length included, and returns
// what of the piece is not part of it.
func (a *assembler) message(size int, piece []byte, each func(msg []byte)) []byte {
	missing := size - len(a.partial)
	if len(a.partial) == 0 && len(piece) >= size { // whole: no need to copy
		each(piece[lengthBytes:size:size])
		return piece[size:]
	}
	n := min(missing, len(piece))
	a.partial = append(a.partial, piece[:n]...)
	if n == missing {
		each(a.partial[lengthBytes:])
		a.partial = recycle(a.partial)
	}
	return piece[n:]
}

// recycle empties a buffer, and lets it go if it has grown large.
func recycle(b []byte) []byte {
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}
