package wire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Keys, owners and software are text: valid UTF-8 without the control
// characters U+0000 to U+001F and U+007F.

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// plain says whether all eight bytes of w lie in 0x20 to 0x7E. Only a byte
// outside that range makes a borrow or a carry, and the lowest such byte gets
// none itself, so its own high bit always tells.
func plain(w uint64) bool {
	return (w|(w-0x20*eachByte)|(w+eachByte))&highBits == 0
}

// isText is on the path of every request, hence the eight bytes at a time; the
// last step overlaps the one before it rather than going byte by byte.
func isText(b []byte) bool {
	if len(b) < 8 {
		for _, c := range b {
			if c-0x20 > 0x7E-0x20 {
				return textFault(b) == ""
			}
		}
		return true
	}
	last := len(b) - 8
	for i := 0; i < last; i += 8 {
		if !plain(binary.LittleEndian.Uint64(b[i:])) {
			return textFault(b) == ""
		}
	}
	return plain(binary.LittleEndian.Uint64(b[last:])) || textFault(b) == ""
}

// textFault says what keeps b from being text, or "" if it is text.
func textFault(b []byte) string {
	for i := 0; i < len(b); {
		c := b[i]
		if c < ' ' || c == 0x7F {
			return fmt.Sprintf("control character U+%04X at byte %d", c, i)
		}
		if c < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(b[i:])
		if size == 1 {
			return fmt.Sprintf("invalid UTF-8 at byte %d", i)
		}
		i += size
	}
	return ""
}

// cut returns the longest start of s that has at most limit bytes and ends at
// a rune boundary. Bytes that are not UTF-8 are cut where the limit falls.
func cut(s []byte, limit int) []byte {
	if len(s) <= limit {
		return s
	}
	for back := 0; back < utf8.UTFMax && back <= limit; back++ {
		if utf8.RuneStart(s[limit-back]) {
			return s[:limit-back]
		}
	}
	return s[:limit]
}
