package web

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"holdfast/internal/locks"
)

// cursor says where a page ended: not how many rows came before it, so that keys
// which come and go neither repeat nor skip others.
type cursor struct {
	column string
	desc   bool
	epoch  locks.Token // of the listing: instants mean something only within it
	place
}

// String writes c as clients pass it back.
func (c cursor) String() string {
	var order byte
	if c.desc {
		order = 1
	}
	b := appendText(nil, c.column)
	b = append(b, order)
	b = binary.AppendUvarint(b, uint64(c.epoch))
	b = binary.AppendVarint(b, c.number)
	b = appendText(b, c.text)
	b = appendText(b, c.key)
	return base64.RawURLEncoding.EncodeToString(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseCursor takes what String wrote.
func parseCursor(v value) (cursor, error) {
	s, err := parseString(v)
	if err != nil {
		return cursor{}, err
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	r := cursorReader{rest: b, bad: err != nil}
	c := cursor{column: r.text(), desc: r.byte() == 1, epoch: locks.Token(r.uvarint())}
	c.place = place{number: r.varint(), text: r.text(), key: r.text()}
	if r.bad || c.String() != s {
		return cursor{}, errors.New("is none that this node gave out")
	}
	return c, nil
}

// cursorReader reads from the front of rest; bad stays once something is missing.
type cursorReader struct {
	rest []byte
	bad  bool
}

func (r *cursorReader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *cursorReader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *cursorReader) text() string { return string(r.take(r.uvarint())) }

func (r *cursorReader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	r.bad = r.bad || size <= 0
	r.take(uint64(max(size, 0)))
	return n
}

func (r *cursorReader) varint() int64 {
	n, size := binary.Varint(r.rest)
	r.bad = r.bad || size <= 0
	r.take(uint64(max(size, 0)))
	return n
}
