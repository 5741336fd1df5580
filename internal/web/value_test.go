package web

import (
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/internal/locks"
)

func TestSeconds(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		text string
		want time.Duration // -1 = refused
	}{
		{"0", 0}, {"0.0", 0}, {"0e99999999999", 0}, {"0.000e-5", 0},
		{"1", time.Second}, {"0.1", 100 * ms}, {"0.3", 300 * ms}, {"1.001", 1001 * ms}, {"0.29", 290 * ms},
		{"0.0001", ms}, {"0.0010", ms}, {"0.0010000000000000000000001", 2 * ms}, {"1e-400", ms}, {"5e-324", ms},
		{"1e3", 1000 * time.Second}, {"1E+3", 1000 * time.Second}, {"1.5e1", 15 * time.Second}, {"123456e-3", 123456 * ms},
		{"10000000000e-10", time.Second}, {"0.00000000001e11", time.Second},
		{"1e308", forever}, {"9223372036.853", 9223372036853 * ms}, {"9223372036.854775", forever}, {"9223372036854775807", forever}, {"1e99999999999", forever},
		{strings.Repeat("9", 10000), forever}, {"0." + strings.Repeat("0", 10000) + "1", ms},
		{"-1", -1}, {"-0", -1}, {"", -1}, {".5", -1}, {"5.", -1}, {"1e", -1}, {"1_0", -1}, {"0x1", -1}, {" 1", -1}, {"1 ", -1}, {"NaN", -1}, {"Inf", -1}, {"٣", -1},
		{"1m30s", 90 * time.Second}, {"1ms", ms}, {"1ns", ms}, {"1001us", 2 * ms}, {"1.5h", 90 * time.Minute}, {".5s", 500 * ms}, {"2562047h47m16.854s", 9223372036854 * ms},
		{"-5s", -1}, {"5m5", -1}, {"9999999h", -1}, {"5 s", -1}, {"s", -1},
	}
	for _, test := range tests {
		got, err := parseSeconds(value{kindText, test.text})
		if err != nil {
			got = -1
		}
		if got != test.want {
			t.Errorf("%.40q: %v, want %v", test.text, got, test.want)
		}
	}
}

func TestSecondsShown(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", time.Second: "1", 1500 * time.Millisecond: "1.5", 1050 * time.Millisecond: "1.05", 1001 * time.Millisecond: "1.001",
		time.Millisecond - 1: "0", 2*time.Millisecond - 1: "0.001", 100 * time.Millisecond: "0.1", 24 * time.Hour: "86400", -time.Second: "0",
	} {
		if got := seconds(d).String(); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// FuzzSeconds compares moving the decimal point with exact fractions.
func FuzzSeconds(f *testing.F) {
	for _, s := range []string{"0.1", "1e3", "0.0010000001", "9223372036.854775", "123.456e-2", "1e-9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isNumber(text) || text[0] == '-' || len(text) > 60 {
			t.Skip() // no number at all is TestSeconds' matter
		}
		if _, exp, found := strings.Cut(strings.ToLower(text), "e"); found {
			if n, err := strconv.Atoi(exp); err != nil || n > 100 || n < -100 {
				t.Skip() // a fraction of that many digits takes for ever
			}
		}
		got, err := parseSeconds(value{kindNumber, text})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is no number to math/big", text)
		}
		exact.Mul(exact, big.NewRat(1000, 1))
		want, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
		if rest.Sign() > 0 {
			want.Add(want, big.NewInt(1))
		}
		if limit := big.NewInt(int64(forever / time.Millisecond)); want.Cmp(limit) > 0 {
			want = limit
		}
		if got%time.Millisecond != 0 || want.Cmp(big.NewInt(got.Milliseconds())) != 0 {
			t.Fatalf("%s: %v, want %v ms", text, got, want)
		}
	})
}

// FuzzDuration: whatever text is taken is what time.ParseDuration says, rounded up.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"1m30s", "1ns", "-1s", "2562047h47m16.854775807s", "1.1µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseSeconds(value{kindString, text})
		if err != nil {
			return
		}
		want, err := time.ParseDuration(text)
		if err != nil || got < want && got != forever || got-want >= time.Millisecond || got%time.Millisecond != 0 {
			t.Fatalf("%q: %v, ParseDuration has %v, %v", text, got, want, err)
		}
	})
}

// FuzzToken: a token is taken if and only if it is the decimal text of a u64.
func FuzzToken(f *testing.F) {
	for _, s := range []string{"0", "9007199254740993", "18446744073709551615", "18446744073709551616", "1e3", "-1", "007", "+1", "1_0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, bad := strconv.ParseUint(text, 10, 64)
		for _, k := range []kind{kindText, kindString, kindNumber} {
			got, err := parseToken(value{k, text})
			if (err == nil) != (bad == nil) || err == nil && got != locks.Token(want) {
				t.Fatalf("%q as %s: %d, %v; ParseUint has %d, %v", text, kindNames[k], got, err, want, bad)
			}
		}
		if _, err := parseToken(value{kindBool, text}); err == nil {
			t.Fatal("a boolean is taken for a token")
		}
	})
}

// FuzzTicket: 32 hex digits or a UUID, and what is taken is shown as its digits.
func FuzzTicket(f *testing.F) {
	for _, s := range []string{"00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-AABBCCDDEEFF", "00000000000000000000000000000000", "0011223344556677-8899aabbccddeeff----", "{00112233-4455-6677-8899-aabbccddeeff}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTicket(value{kindString, text})
		digits := text
		if len(text) == 36 {
			digits = strings.Join(strings.SplitN(text, "-", 5), "")
		}
		want, bad := hex.DecodeString(digits)
		ok := bad == nil && len(want) == 16 && locks.Ticket(want) != locks.Ticket{} && (len(text) == 32 || uuidShape(text))
		if (err == nil) != ok {
			t.Fatalf("%q: %v, should be taken: %v", text, err, ok)
		}
		if err != nil {
			return
		}
		shown, _ := ticketText(got).MarshalText()
		if string(shown) != strings.ToLower(digits) {
			t.Fatalf("%q is shown as %s", text, shown)
		}
	})
}

func uuidShape(s string) bool {
	for i := range len(s) {
		if (s[i] == '-') != (i == 8 || i == 13 || i == 18 || i == 23) {
			return false
		}
	}
	return len(s) == 36
}

// FuzzKey: the rule of the native protocol.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"job", "", "a\x00", "\x7f", "\u0085", "\u2028", strings.Repeat("é", 513)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip() // the readers of bodies and queries let none through: see their fuzz tests
		}
		_, err := parseKey(value{kindText, text})
		ok := text != "" && len(text) <= locks.MaxKeyLength && !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f })
		if (err == nil) != ok {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
