package web

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// inputError is what is wrong with a request's input. Field is empty where no
// field is concerned.
type inputError struct {
	field string
	what  string
}

func (e *inputError) Error() string {
	if e.field == "" {
		return e.what
	}
	return e.field + ": " + e.what
}

// eachJSON reads body as one JSON object of scalars and calls fn for each member,
// in order. encoding/json is no help here: it replaces bad UTF-8 and lone
// surrogates, lets the last of two equal names win and can't say at which
// field a body breaks off.
func eachJSON(body []byte, fn func(name string, v value) error) error {
	s := jsonScanner{rest: string(body)}
	if !s.take('{') {
		return &inputError{what: "the body must be one JSON object"}
	}
	if !s.take('}') {
		if err := s.members(fn); err != nil {
			return err
		}
	}
	if s.space(); s.rest != "" {
		return &inputError{what: "something follows the JSON object"}
	}
	return nil
}

// jsonScanner reads JSON from the front of rest.
type jsonScanner struct{ rest string }

func (s *jsonScanner) space() { s.rest = strings.TrimLeft(s.rest, " \t\r\n") }

// take skips white space and then c, if it is there.
func (s *jsonScanner) take(c byte) bool {
	s.space()
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// word takes w, if it is next.
func (s *jsonScanner) word(w string) (ok bool) {
	s.rest, ok = strings.CutPrefix(s.rest, w)
	return ok
}

// members reads all members up to and including the closing brace.
func (s *jsonScanner) members(fn func(string, value) error) error {
	for {
		if s.space(); !strings.HasPrefix(s.rest, `"`) {
			return &inputError{what: "a field name in double quotes is missing in the JSON object"}
		}
		name, err := s.string()
		if err != nil {
			return &inputError{what: "a field name " + err.Error()}
		}
		if !s.take(':') {
			return &inputError{name, `a ":" is missing after the name`}
		}
		v, err := s.value()
		if err != nil {
			return &inputError{name, err.Error()}
		}
		if err := fn(name, v); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return &inputError{name, `the value is not followed by "," or "}"`}
		}
	}
}

// value reads one value. Of an array or an object it reads only the first byte:
// no field takes one, so the caller stops there.
func (s *jsonScanner) value() (value, error) {
	s.space()
	if s.rest == "" {
		return value{}, errors.New("the value is missing")
	}
	switch c := s.rest[0]; {
	case c == '"':
		text, err := s.string()
		return value{kindString, text}, err
	case c == '[':
		return value{kind: kindArray}, nil
	case c == '{':
		return value{kind: kindObject}, nil
	case s.word("true"):
		return value{kindBool, "true"}, nil
	case s.word("false"):
		return value{kindBool, "false"}, nil
	case s.word("null"):
		return value{kind: kindNull}, nil
	}
	n := numberLength(s.rest)
	if n == 0 {
		return value{}, errors.New("is not a JSON value")
	}
	v := value{kindNumber, s.rest[:n]}
	s.rest = s.rest[n:]
	return v, nil
}

// numberLength returns the length of the JSON number at the front of s, or 0.
func numberLength(s string) int {
	i := 0
	digits := func() bool {
		from := i
		for i < len(s) && '0' <= s[i] && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if strings.HasPrefix(s[i:], "0") {
		i++
	} else if !digits() {
		return 0
	}
	if i < len(s) && s[i] == '.' {
		if i++; !digits() {
			return 0
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return 0
		}
	}
	return i
}

// string reads a string, the opening quote of which is next.
func (s *jsonScanner) string() (string, error) {
	s.rest = s.rest[1:]
	var b strings.Builder
	for {
		n := strings.IndexAny(s.rest, "\"\\")
		if n < 0 {
			return "", errors.New("has no closing quote")
		}
		for _, c := range []byte(s.rest[:n]) {
			if c < ' ' {
				return "", fmt.Errorf("holds the control character %U", c)
			}
		}
		b.WriteString(s.rest[:n])
		s.rest = s.rest[n:]
		if s.rest[0] == '"' {
			s.rest = s.rest[1:]
			return b.String(), validText(b.String())
		}
		r, err := s.escape()
		if err != nil {
			return "", err
		}
		b.WriteRune(r)
	}
}

const escapes, escaped = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

// escape reads an escape sequence, the backslash of which is next.
func (s *jsonScanner) escape() (rune, error) {
	if len(s.rest) >= 2 {
		if i := strings.IndexByte(escapes, s.rest[1]); i >= 0 {
			s.rest = s.rest[2:]
			return rune(escaped[i]), nil
		}
	}
	r, ok := s.unicode()
	if !ok {
		return 0, errors.New("holds a bad escape")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	low, ok := s.unicode()
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, errors.New("holds half a surrogate pair")
	}
	return r, nil
}

// unicode reads a \u escape with its four hexadecimal digits.
func (s *jsonScanner) unicode() (rune, bool) {
	if len(s.rest) < 6 || s.rest[0] != '\\' || s.rest[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s.rest[2:6], 16, 16)
	if err != nil {
		return 0, false
	}
	s.rest = s.rest[6:]
	return rune(n), true
}
