package web

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/internal/locks"
)

// value is one field of a request as it came: the text of a form or a query,
// or a JSON scalar. Each rule about what a field may hold is one function
// below; it is the same for all three ways in.
type value struct {
	kind kind
	text string // decoded text of a string, the literal of a number or boolean
}

type kind uint8

const (
	kindText   kind = iota // from a form or a query
	kindBare               // a query parameter with neither "=" nor text
	kindString             // JSON, and so are the rest
	kindNumber
	kindBool
	kindNull
	kindArray
	kindObject
)

var kindNames = [...]string{
	kindText: "text", kindBare: "nothing", kindString: "a string", kindNumber: "a number",
	kindBool: "a boolean", kindNull: "null", kindArray: "an array", kindObject: "an object",
}

func (v value) mismatch(want string) error {
	return fmt.Errorf("must be %s, not %s", want, kindNames[v.kind])
}

const (
	maxLabelBytes = 255 // owner, as in the native protocol

	// maxWait is the longest wait that the native protocol can express, so that
	// both doors have one bound.
	maxWait = (1<<32 - 1) * time.Millisecond
)

func parseString(v value) (string, error) {
	switch v.kind {
	case kindText, kindString:
		return v.text, nil
	case kindBare:
		return "", nil
	}
	return "", v.mismatch("a string")
}

// parseLine takes text of at most limit bytes without control characters. That
// it is valid UTF-8 the readers of bodies and queries have seen to.
func parseLine(v value, limit int) (string, error) {
	s, err := parseString(v)
	if err != nil {
		return "", err
	}
	if len(s) > limit {
		return "", fmt.Errorf("is %d bytes long, at most %d are allowed", len(s), limit)
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return "", fmt.Errorf("holds the control character %U", r)
		}
	}
	return s, nil
}

func parseKey(v value) (string, error) {
	s, err := parseLine(v, locks.MaxKeyLength)
	if err == nil && s == "" {
		err = errors.New("is empty")
	}
	return s, err
}

func parseLabel(v value) (string, error)  { return parseLine(v, maxLabelBytes) }
func parseFilter(v value) (string, error) { return parseLine(v, locks.MaxKeyLength) }

// parseReason takes what people should know of it later.
func parseReason(v value) (string, error) {
	s, err := parseLabel(v)
	if err == nil && strings.TrimSpace(s) == "" {
		err = errors.New("is empty")
	}
	return s, err
}

func parseBool(v value) (bool, error) {
	if v.kind == kindText || v.kind == kindBool || v.kind == kindNumber {
		switch v.text {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
	}
	return false, errors.New("must be true, false, 1 or 0")
}

// parseSwitch is parseBool for parameters that people write without a value,
// as in "/readyz?verbose".
func parseSwitch(v value) (bool, error) {
	if v.kind == kindBare {
		return true, nil
	}
	return parseBool(v)
}

// digits returns the value's text if it consists of decimal digits and came as
// a number or, where text is allowed, as text.
func (v value) digits(text bool) (string, bool) {
	if v.kind != kindNumber && v.kind != kindText && !(text && v.kind == kindString) {
		return "", false
	}
	if v.text == "" || strings.Trim(v.text, "0123456789") != "" {
		return "", false
	}
	return v.text, true
}

// parseInt takes a whole number from 0 to limit.
func parseInt(limit int) func(value) (int, error) {
	return func(v value) (int, error) {
		if s, ok := v.digits(false); ok {
			if n, err := strconv.ParseInt(s, 10, 64); err == nil && n <= int64(limit) {
				return int(n), nil
			}
		}
		return 0, fmt.Errorf("must be a whole number from 0 to %d", limit)
	}
}

func parseSlots(v value) (uint16, error) {
	n, err := parseInt(1<<16 - 1)(v)
	return uint16(n), err
}

// parseToken takes a number or a decimal string. Floating point has no part in
// it: 9007199254740993 must not become its neighbour.
func parseToken(v value) (locks.Token, error) {
	if s, ok := v.digits(true); ok {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return locks.Token(n), nil
		}
	}
	return 0, errors.New("must be a whole number below 2^64, or a string of its decimal digits")
}

// parseTicket takes 32 hex digits, or a UUID: the same with four hyphens.
func parseTicket(v value) (t locks.Ticket, err error) {
	s, err := parseString(v)
	if err != nil {
		return t, err
	}
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(s) != 2*len(t) {
		return t, errors.New("must be a UUID or 32 hex digits")
	}
	for i := range t {
		n, err := strconv.ParseUint(s[2*i:2*i+2], 16, 8)
		if err != nil {
			return locks.Ticket{}, errors.New("must be a UUID or 32 hex digits")
		}
		t[i] = byte(n)
	}
	if t.IsZero() {
		return t, errors.New("is all zero, which names no attempt: take random bytes")
	}
	return t, nil
}

// parseChoice takes one of the given words.
func parseChoice(words ...string) func(value) (string, error) {
	return func(v value) (string, error) {
		s, err := parseString(v)
		if err == nil && !slices.Contains(words, s) {
			err = fmt.Errorf("must be one of %s", strings.Join(words, ", "))
		}
		return s, err
	}
}

// optional turns a parser into one that can tell an absent field from a zero.
func optional[V any](parse func(value) (V, error)) func(value) (*V, error) {
	return func(v value) (*V, error) {
		got, err := parse(v)
		if err != nil {
			return nil, err
		}
		return &got, nil
	}
}

// validText says whether s may stand in a request at all.
func validText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	return nil
}
