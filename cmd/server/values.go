package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// The kinds of value that a setting can have. Decode is how envconfig fills them: it says what is wrong with a text,
// and the setting's tags say what is allowed. What a person wrote is not guessed at: no octal, no blanks, no
// rounding.

// span is a length of time.
type span time.Duration

func (s *span) Decode(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("is not a duration such as 250ms, 30s or 1h30m")
	}
	*s = span(d)
	return nil
}

func (s span) duration() time.Duration { return time.Duration(s) }

// String drops the zero units that time.Duration writes: 24h, not 24h0m0s.
func (s span) String() string {
	text := s.duration().String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// count is a whole number.
type count int64

func (c *count) Decode(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || strings.HasPrefix(text, "+") {
		return errors.New("is not a whole number")
	}
	*c = count(n) // out of range: the nearest that fits, which the setting's own range refuses
	return nil
}

func (c count) String() string { return strconv.FormatInt(int64(c), 10) }

// size is a number of bytes.
type size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

func (s *size) Decode(text string) error {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		var n count
		if n.Decode(digits) != nil {
			break
		}
		if int64(n) > math.MaxInt64/unit.bytes {
			n = count(math.MaxInt64 / unit.bytes)
		}
		*s = size(int64(n) * unit.bytes)
		return nil
	}
	return errors.New("is not a number of bytes such as 65536, 512KiB or 1GiB")
}

func (s size) String() string {
	for _, unit := range sizeUnits {
		if n := int64(s); n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// choice is one of a few words: the setting's tag says which.
type choice string

// secret is never shown: not by fmt, not by slog, not in an error.
type secret string

const masked = "********"

func (s *secret) Decode(text string) error {
	if len(text) < 12 || len(text) > 1024 {
		return fmt.Errorf("has %d characters", len(text))
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return fmt.Errorf("has a blank or another character that is not allowed, at position %d", i+1)
		}
	}
	*s = secret(text)
	return nil
}

func (s secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

func (s secret) GoString() string     { return s.String() }
func (s secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// path is the name of a file or a directory.
type path string

func (p *path) Decode(text string) error {
	if strings.ContainsRune(text, 0) {
		return errors.New("is not a path")
	}
	*p = path(text)
	return nil
}
