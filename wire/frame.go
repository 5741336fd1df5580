package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// needMore is checkHeader's key length while too few bytes are there to tell.
const needMore = -1

// maxBodyBytes is what is left of the largest frame for its key and fields.
const maxBodyBytes = MaxFrameBytes - MinFrameBytes

// checkHeader judges the header and the key of the frame at the start of b and
// returns the length of the key. Each fault is found as soon as its bytes are
// there: a bad length with 4 bytes, a bad key length with 12, a bad key with
// the key. The verdict does not depend on how the stream was cut into packets.
func checkHeader(b []byte) (keyLen int, err error) {
	if len(b) < 4 {
		return needMore, nil
	}
	length := binary.BigEndian.Uint32(b)
	if length < MinFrameBytes || length > MaxFrameBytes {
		return 0, &FrameError{Op: OpError, Detail: fmt.Sprintf("frame length %d: must be %d to %d bytes", length, MinFrameBytes, MaxFrameBytes)}
	}
	if len(b) < HeaderBytes {
		return needMore, nil
	}
	k := int(binary.BigEndian.Uint16(b[6:]))
	if k > MaxKeyBytes {
		return 0, headerFault(b, nil, "key length %d: at most %d bytes", k, MaxKeyBytes)
	}
	if k > int(length)-MinFrameBytes {
		return 0, headerFault(b, nil, "key length %d: the frame has only %d bytes after its header", k, length-MinFrameBytes)
	}
	if len(b)-HeaderBytes < k {
		return needMore, nil
	}
	if key := b[HeaderBytes : HeaderBytes+k]; !isText(key) {
		return 0, headerFault(b, nil, "key: %s; valid UTF-8 without control characters is asked for", textFault(key))
	}
	return k, nil
}

// headerFault makes the error of a frame whose header could be read.
func headerFault(b, key []byte, format string, args ...any) error {
	return &FrameError{
		Op:     Op(b[4]),
		ID:     binary.BigEndian.Uint32(b[8:]),
		Key:    key,
		Detail: fmt.Sprintf(format, args...),
	}
}

// frameEnd is where the frame at the start of b ends; its header was checked.
func frameEnd(b []byte) int { return 4 + int(binary.BigEndian.Uint32(b)) }

// keyOf returns the key of the frame at the start of b, nil if it has none.
// The capacity ends with the key, so that an append cannot write into the frame.
func keyOf(b []byte, k int) []byte {
	if k == 0 {
		return nil
	}
	return b[HeaderBytes : HeaderBytes+k : HeaderBytes+k]
}

// takeStr takes a str off the start of f. ok is false if f is too short for it.
func takeStr(f []byte) (s, rest []byte, ok bool) {
	if len(f) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(f))
	if len(f)-2 < n {
		return nil, nil, false
	}
	return f[2 : 2+n : 2+n], f[2+n:], true
}

// putStr writes s as a str to the start of f, which is long enough, and returns
// what follows it.
func putStr(f, s []byte) []byte {
	binary.BigEndian.PutUint16(f, uint16(len(s)))
	return f[2+copy(f[2:], s):]
}

// appendFrame appends header and key, and room for the fields, which it
// returns apart for the caller to fill in.
func appendFrame(dst []byte, op Op, mark byte, id uint32, key []byte, fieldBytes int) (all, fields []byte) {
	k := len(key)
	if k > MaxKeyBytes || k+fieldBytes > maxBodyBytes {
		panic(fmt.Sprintf("wire: %v with a key of %d and fields of %d bytes: at most %d, and %d in all",
			op, k, fieldBytes, MaxKeyBytes, maxBodyBytes))
	}
	size := HeaderBytes + k + fieldBytes
	all = slices.Grow(dst, size)[:len(dst)+size]
	f := all[len(dst):]
	binary.BigEndian.PutUint32(f, uint32(size-4))
	f[4] = byte(op)
	f[5] = mark
	binary.BigEndian.PutUint16(f[6:], uint16(k))
	binary.BigEndian.PutUint32(f[8:], id)
	copy(f[HeaderBytes:], key)
	return all, f[HeaderBytes+k:]
}
