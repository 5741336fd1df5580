package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"holdfast/internal/locks"
)

// number writes a whole number with its thousands apart.
func number[T ~int | ~int64 | ~uint16 | ~uint32 | ~uint64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// counted writes a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}

// span writes a duration in at most two units, as people say it.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d > 0 && d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d > 0 && d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d > 0 && d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	for _, u := range []struct {
		big, small         time.Duration
		bigName, smallName string
	}{{24 * time.Hour, time.Hour, "d", "h"}, {time.Hour, time.Minute, "h", "min"}, {time.Minute, time.Second, "min", "s"}} {
		if d >= u.big {
			text := fmt.Sprintf("%d %s", d/u.big, u.bigName)
			if rest := d % u.big / u.small; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, u.smallName)
			}
			return text
		}
	}
	return "0 s"
}

// size writes a number of bytes.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', 1, 64) + " " + u.name
		}
	}
	return number(n) + " B"
}

// moment is an instant as a page shows it.
type moment struct {
	Text    string // 16:04:05
	Full    string // 2026-12-01 16:04:05 UTC
	Machine string // RFC 3339
}

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return moment{Text: "–"}
	}
	t = t.UTC()
	return moment{t.Format(time.TimeOnly), t.Format("2006-01-02 15:04:05") + " UTC", t.Format(time.RFC3339)}
}

// since writes how long ago something was, and "–" where it is not known.
func since(now, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return span(now.Sub(t))
}

// run is a piece of a text that a client chose.
type run struct {
	Text string
	Code bool // the name of a character that can't be seen
}

// runs takes a text apart so that nothing in it hides: characters without a
// shape, or that change the order of others, are named instead.
func runs(text string) []run {
	var all []run
	plain := 0
	for i, r := range text {
		if unicode.IsGraphic(r) && !hidden(r) {
			continue
		}
		if plain < i {
			all = append(all, run{Text: text[plain:i]})
		}
		all = append(all, run{fmt.Sprintf("U+%04X", r), true})
		plain = i + len(string(r))
	}
	if plain < len(text) {
		all = append(all, run{Text: text[plain:]})
	}
	return all
}

// hidden are characters that count as graphic and still show nothing.
func hidden(r rune) bool {
	return r != ' ' && (unicode.Is(unicode.Z, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r))
}

// ownerRuns shows an owner's label, and something where it is empty.
func ownerRuns(owner string) []run {
	if owner == "" {
		return []run{{Text: "(no label)"}}
	}
	return runs(owner)
}

func tokenText(t locks.Token) string { return strconv.FormatUint(uint64(t), 10) }
