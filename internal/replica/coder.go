package replica

import (
	"encoding/binary"
	"errors"
	"time"
)

// coder walks the fields of a message, writing or reading them: one
// description of a message serves both ways, so the two cannot differ.
// Integers are big-endian.
type coder struct {
	buf     []byte // writing: what was written; reading: what is left
	reading bool
	err     error
}

var (
	errShort = errors.New("message is cut off")
	errBound = errors.New("message has a length above its bound")
)

// take returns the next n bytes to read; zeros once the message is broken.
func (c *coder) take(n int) []byte {
	if c.err != nil || len(c.buf) < n {
		c.fail(errShort)
		return make([]byte, min(n, 8))
	}
	b := c.buf[:n:n]
	c.buf = c.buf[n:]
	return b
}

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *coder) byte(v *byte) {
	if c.reading {
		*v = c.take(1)[0]
	} else {
		c.buf = append(c.buf, *v)
	}
}

func (c *coder) u16(v *uint16) {
	if c.reading {
		*v = binary.BigEndian.Uint16(c.take(2))
	} else {
		c.buf = binary.BigEndian.AppendUint16(c.buf, *v)
	}
}

func (c *coder) u64(v *uint64) {
	if c.reading {
		*v = binary.BigEndian.Uint64(c.take(8))
	} else {
		c.buf = binary.BigEndian.AppendUint64(c.buf, *v)
	}
}

// number is a u64 of a named type.
func number[T ~uint64 | ~int64](c *coder, v *T) {
	n := uint64(*v)
	c.u64(&n)
	*v = T(n)
}

// span is a duration of at least 0, in microseconds; a u64 that is too long for one is a fault.
func (c *coder) span(v *time.Duration) {
	us := uint64(max(*v, 0) / time.Microsecond)
	c.u64(&us)
	if us > uint64(1<<63-1)/1000 {
		c.fail(errBound)
		us = 0
	}
	*v = time.Duration(us) * time.Microsecond
}

// flags are up to eight booleans in one byte; unknown ones are ignored.
func (c *coder) flags(vs ...*bool) {
	var b byte
	for i, v := range vs {
		if *v {
			b |= 1 << i
		}
	}
	c.byte(&b)
	for i, v := range vs {
		*v = b&(1<<i) != 0
	}
}

// rank is a byte; 255 is Nobody.
func (c *coder) rank(v *Rank) {
	b := byte(*v)
	c.byte(&b)
	if b != 255 && b >= MaxNodes {
		c.fail(errBound)
		b = 255
	}
	*v = Rank(int8(b))
}

// number53 is a number below 2^53, as tokens are until 2043 and counts of
// events for longer. Of a peer less is believed: what comes of it here, higher
// tokens and more events, has room above it, nineteen hours' worth by the clock.
func number53[T ~uint64](c *coder, v *T) {
	number(c, v)
	bound := T(1 << 53)
	if c.reading {
		bound = MaxHeard
	}
	if *v >= bound {
		c.fail(errBound)
		*v = 0
	}
}

// MaxHeard bounds the tokens and the numbers of events that are taken from other nodes.
const MaxHeard = 1<<53 - 1<<40

func (c *coder) position(p *Position) {
	number53(c, &p.Epoch)
	number53(c, &p.Seq)
}

// count codes a length of at most bound as a byte.
func (c *coder) count(n, bound int) int {
	b := byte(n)
	c.byte(&b)
	if int(b) > bound {
		c.fail(errBound)
		return 0
	}
	return int(b)
}

func (c *coder) lineage(l *Lineage) {
	n := c.count(len(*l), maxLineage)
	if c.reading {
		*l = nil
		if len(c.buf) < 24*n {
			c.fail(errShort)
			return
		}
		*l = make(Lineage, n)
	}
	for i := range n {
		r := &(*l)[i]
		number53(c, &r.Epoch)
		number53(c, &r.End)
		number53(c, &r.Since)
		if i > 0 && r.Epoch <= (*l)[i-1].Epoch {
			c.fail(errBound) // finding an epoch needs the order
		}
	}
}

// text is a string of at most bound bytes, with a u16 length.
func (c *coder) text(v *string, bound int) {
	n := uint16(len(*v))
	c.u16(&n)
	if int(n) > bound {
		c.fail(errBound)
		return
	}
	if c.reading {
		if c.err != nil || len(c.buf) < int(n) {
			c.fail(errShort)
			return
		}
		*v = string(c.take(int(n)))
	} else {
		c.buf = append(c.buf, *v...)
	}
}

func (c *coder) texts(v *[]string, bound, each int) {
	n := c.count(len(*v), bound)
	if c.reading {
		*v = nil
		if c.err != nil || len(c.buf) < 2*n {
			c.fail(errShort)
			return
		}
		*v = make([]string, n)
	}
	for i := range n {
		c.text(&(*v)[i], each)
	}
}

// blob is bytes with a u32 length. What is read points into the message.
func (c *coder) blob(v *[]byte, bound int) {
	if !c.reading {
		c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(*v)))
		c.buf = append(c.buf, *v...)
		return
	}
	*v = nil
	n := binary.BigEndian.Uint32(c.take(4))
	if uint64(n) > uint64(bound) {
		c.fail(errBound)
		return
	}
	if c.err == nil && uint64(len(c.buf)) < uint64(n) {
		c.fail(errShort)
	}
	if c.err == nil && n > 0 {
		*v = c.take(int(n))
	}
}
