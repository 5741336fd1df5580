package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// textByTheBook is the definition of text, without any shortcut.
func textByTheBook(b []byte) bool {
	for _, r := range string(b) {
		if r <= 0x1F || r == 0x7F {
			return false
		}
	}
	return utf8.Valid(b)
}

// Every byte at every place of texts of every length around the steps of eight.
func TestTextByteByByte(t *testing.T) {
	for length := 1; length <= 33; length++ {
		for at := range length {
			for c := range 256 {
				b := bytes.Repeat([]byte("~ "), 17)[:length]
				b[at] = byte(c)
				if got, want := isText(b), textByTheBook(b); got != want {
					t.Fatalf("isText(%q) = %v, want %v", b, got, want)
				}
			}
		}
	}
}

// Every character, and every pair of bytes, at the end of a step and over it.
func TestTextCharacterByCharacter(t *testing.T) {
	check := func(b []byte) {
		if got, want := isText(b), textByTheBook(b); got != want {
			t.Fatalf("isText(%q) = %v, want %v", b, got, want)
		}
	}
	for r := rune(0); r <= utf8.MaxRune; r += 1 + r/300 {
		for _, before := range []string{"", "1234567", "12345678901234"} {
			check(append([]byte(before), string(r)...))
		}
	}
	for c := range 1 << 16 {
		check([]byte{'1', '2', '3', '4', '5', '6', '7', byte(c >> 8), byte(c)})
		check([]byte{byte(c >> 8), byte(c)})
	}
}

func TestCheckKey(t *testing.T) {
	for _, c := range []struct{ key, want string }{
		{"k", ""},
		{strings.Repeat("k", MaxKeyBytes), ""},
		{"aufträge/№7", ""},
		{"", "key: 0 bytes; 1 to 1024"},
		{strings.Repeat("k", MaxKeyBytes+1), "key: 1025 bytes; 1 to 1024"},
		{"jobs/daily\n", "key: control character U+000A at byte 10; valid UTF-8 without control characters"},
		{"ä\x7f", "key: control character U+007F at byte 2; valid UTF-8 without control characters"},
		{"ä\xc3", "key: invalid UTF-8 at byte 2; valid UTF-8 without control characters"},
	} {
		err := CheckKey([]byte(c.key))
		if c.want == "" {
			if err != nil {
				t.Errorf("CheckKey(%q) = %v", c.key, err)
			}
			continue
		}
		var fault *ArgumentError
		if !errors.As(err, &fault) || fault.Detail != c.want {
			t.Errorf("CheckKey(%q) = %v, want %s", c.key, err, c.want)
		}
	}
}
