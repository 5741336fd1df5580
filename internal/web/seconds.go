package web

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// seconds is a duration in an answer: a number of seconds with at most three
// decimals, rounded down, so that a lease is never shown longer than it is.
type seconds time.Duration

// MarshalJSON writes s as a JSON number.
func (s seconds) MarshalJSON() ([]byte, error) { return s.append(nil), nil }

func (s seconds) String() string { return string(s.append(nil)) }

func (s seconds) append(dst []byte) []byte {
	ms := max(time.Duration(s), 0).Milliseconds()
	dst = strconv.AppendInt(dst, ms/1000, 10)
	if ms %= 1000; ms == 0 {
		return dst
	}
	frac := strconv.AppendInt(nil, 1000+ms, 10) // the 1 keeps leading zeros
	return append(append(dst, '.'), strings.TrimRight(string(frac[1:]), "0")...)
}

// forever is what a duration too long for time.Duration becomes. It is above
// every bound, so that the answer can name the bound instead of an overflow.
const forever = math.MaxInt64 / time.Millisecond * time.Millisecond

var errSeconds = errors.New(`must be seconds as a number, or a duration such as "1m30s"`)

// parseSeconds takes seconds as a number or a Go duration string, rounded up to
// a millisecond.
func parseSeconds(v value) (time.Duration, error) {
	switch v.kind {
	case kindNumber:
		return decimalSeconds(v.text)
	case kindText, kindString:
		return durationText(v)
	}
	return 0, errSeconds
}

func durationText(v value) (time.Duration, error) {
	if strings.HasPrefix(v.text, "-") {
		return 0, errors.New("must not be negative")
	}
	if isNumber(v.text) {
		if v.kind == kindString && v.text != "0" {
			return 0, fmt.Errorf("needs a unit when it is a string: %q, or %s as a number", v.text+"s", v.text)
		}
		return decimalSeconds(v.text)
	}
	d, err := time.ParseDuration(v.text)
	if err != nil {
		return 0, errSeconds
	}
	if rest := d % time.Millisecond; rest != 0 && d < forever {
		d += time.Millisecond - rest
	}
	return min(d, forever), nil
}

// secondsUpTo is parseSeconds with a bound.
func secondsUpTo(limit time.Duration) func(value) (time.Duration, error) {
	return func(v value) (time.Duration, error) {
		d, err := parseSeconds(v)
		if err == nil && d > limit {
			err = fmt.Errorf("must be at most %s seconds", seconds(limit))
		}
		return d, err
	}
}

// decimalSeconds turns a JSON number into a duration by moving its decimal
// point: in floating point 0.1 s is not 100 ms, and rounding up would make it 101.
func decimalSeconds(text string) (time.Duration, error) {
	if strings.HasPrefix(text, "-") {
		return 0, errors.New("must not be negative")
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	if digits == "" {
		return 0, nil
	}
	exp, _ := strconv.ParseInt(exponent, 10, 32) // out of range: the nearest bound, far beyond any digits
	point := len(digits) - len(frac) + 3 + int(exp)
	switch {
	case point <= 0:
		return time.Millisecond, nil
	case point > len(digits):
		if point > 18 {
			return forever, nil
		}
		digits += strings.Repeat("0", point-len(digits))
	}
	ms, err := strconv.ParseInt(digits[:point], 10, 64)
	if err != nil || ms >= int64(forever/time.Millisecond) {
		return forever, nil
	}
	if strings.Trim(digits[point:], "0") != "" {
		ms++
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// isNumber says whether all of text is a JSON number.
func isNumber(text string) bool { return text != "" && numberLength(text) == len(text) }
