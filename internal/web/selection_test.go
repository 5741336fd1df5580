package web

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/locks"
)

// randomRows makes rows with many ties in every column, and some keys that
// nobody holds or waits for.
func randomRows(rnd *rand.Rand, n int) []locks.Row {
	rows := make([]locks.Row, n)
	for i := range rows {
		r := &rows[i]
		r.Key = fmt.Sprintf("%c/%d", 'a'+rnd.IntN(4), i)
		r.Waiters = uint32(rnd.IntN(3))
		r.Mode = locks.Mode(rnd.IntN(4))
		if r.Mode != locks.ModeFree {
			r.Holders, r.Owner, r.Token = 1, string(rune('x'+rnd.IntN(3))), locks.Token(rnd.IntN(20))
			r.HeldSince, r.LeaseEnds = locks.Time(rnd.IntN(10)-5), locks.Time(rnd.IntN(10))
		}
		if r.Waiters > 0 {
			r.OldestWait = locks.Time(rnd.IntN(10) - 5)
		}
	}
	rnd.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// byName is the order of a listing, said in the plainest way.
func byName(sort string, a, b *locks.Row) int {
	durations := func(r *locks.Row) (held, lease, waited int64) {
		held, lease, waited = none, none, none
		if r.Holders > 0 {
			held, lease = int64(-r.HeldSince), int64(r.LeaseEnds)
		}
		if r.Waiters > 0 {
			waited = int64(-r.OldestWait)
		}
		return held, lease, waited
	}
	ah, al, aw := durations(a)
	bh, bl, bw := durations(b)
	c := map[string]int{
		"key": 0, "mode": cmp.Compare(a.Mode, b.Mode), "owner": strings.Compare(a.Owner, b.Owner), "token": cmp.Compare(a.Token, b.Token),
		"held_for": cmp.Compare(ah, bh), "lease": cmp.Compare(al, bl), "oldest_wait": cmp.Compare(aw, bw), "waiters": cmp.Compare(a.Waiters, b.Waiters),
	}[sort]
	return cmp.Or(c, strings.Compare(a.Key, b.Key))
}

// Page by page, every sort and order gives exactly the rows that match, in order.
func TestPagesMatchASort(t *testing.T) {
	const seed = 20260101
	rnd := rand.New(rand.NewPCG(seed, seed))
	for range 300 {
		rows := randomRows(rnd, rnd.IntN(60))
		limit := 1 + rnd.IntN(12)
		in := listInput{sort: columns[rnd.IntN(len(columns))].name, order: []string{"asc", "desc"}[rnd.IntN(2)], limit: &limit, minWaiters: rnd.IntN(2)}
		if rnd.IntN(2) == 0 {
			in.prefix = "a"
		}
		var want []string
		sorted := slices.Clone(rows)
		slices.SortFunc(sorted, func(a, b locks.Row) int {
			if in.order == "desc" {
				a, b = b, a
			}
			return byName(in.sort, &a, &b)
		})
		for i := range sorted {
			if r := &sorted[i]; strings.HasPrefix(r.Key, in.prefix) && int(r.Waiters) >= in.minWaiters {
				want = append(want, r.Key)
			}
		}
		if got := allPages(t, rows, in); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v, limit %d:\ngot  %v\nwant %v", seed, in, limit, got, want)
		}
	}
}

// allPages follows the cursors to the end, through their text.
func allPages(t *testing.T, rows []locks.Row, in listInput) []string {
	t.Helper()
	var keys []string
	for {
		sel, refusal := newSelection(&in, true)
		if refusal != nil {
			t.Fatal(refusal.plain)
		}
		for i := range rows {
			if in.matches(&rows[i]) {
				sel.offer(&rows[i])
			}
		}
		page, more := sel.page()
		if len(page) > *in.limit || more && len(page) != *in.limit {
			t.Fatalf("a page of %d with limit %d, more: %v", len(page), *in.limit, more)
		}
		for _, r := range page {
			keys = append(keys, r.Key)
		}
		if !more {
			return keys
		}
		c, err := parseCursor(value{kindText, sel.cursorAt(page[len(page)-1], 8).String()})
		if err != nil {
			t.Fatal(err)
		}
		in.cursor = &c
	}
}

// Keys that come and go between two pages neither repeat nor skip those that stay.
func TestPagesWhileKeysComeAndGo(t *testing.T) {
	rows := []locks.Row{{Key: "b"}, {Key: "d"}, {Key: "f"}, {Key: "h"}}
	limit := 2
	in := listInput{limit: &limit}
	sel, _ := newSelection(&in, true)
	for i := range rows {
		sel.offer(&rows[i])
	}
	page, _ := sel.page()
	c := sel.cursorAt(page[1], 8)
	in.cursor = &c
	rows = []locks.Row{{Key: "a"}, {Key: "b"}, {Key: "c"}, {Key: "e"}, {Key: "f"}, {Key: "h"}} // d, where the cursor stands, is gone
	var got []string
	sel, _ = newSelection(&in, true)
	for i := range rows {
		sel.offer(&rows[i])
	}
	page, more := sel.page()
	for _, r := range page {
		got = append(got, r.Key)
	}
	if !slices.Equal(got, []string{"e", "f"}) || !more {
		t.Errorf("got %v, more: %v", got, more)
	}
}

func TestCursorOfAnotherSort(t *testing.T) {
	for _, c := range []cursor{{column: "owner"}, {column: "key", desc: true}} {
		if _, refusal := newSelection(&listInput{cursor: &c}, true); refusal == nil || refusal.status != 400 {
			t.Errorf("%+v is taken", c)
		}
	}
}

// FuzzCursor: what is taken is exactly what would be given out.
func FuzzCursor(f *testing.F) {
	f.Add(cursor{column: "lease", desc: true, epoch: 8, place: place{number: none, text: "o", key: "k"}}.String())
	f.Add(cursor{column: "key", place: place{key: strings.Repeat("k", 1024)}}.String())
	f.Add("")
	f.Add("A2tleQAIAAADYS8x=")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(value{kindText, text})
		if err != nil {
			return
		}
		if c.String() != text {
			t.Fatalf("%q comes back as %q", text, c.String())
		}
		newSelection(&listInput{cursor: &c, sort: "key"}, true)
	})
}

func BenchmarkListMillion(b *testing.B) {
	rows := make([]locks.Row, 1_000_000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		rows[i] = locks.Row{Key: fmt.Sprintf("tenant-%d/job-%d", rnd.IntN(1000), i), Owner: "worker", Holders: 1, Mode: locks.ModeExclusive, LeaseEnds: locks.Time(rnd.Int64())}
	}
	for _, sort := range []string{"key", "lease"} {
		b.Run(sort, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in := listInput{sort: sort, contains: "7"}
				sel, _ := newSelection(&in, true)
				for i := range rows {
					if in.matches(&rows[i]) {
						sel.offer(&rows[i])
					}
				}
				sel.page()
			}
		})
	}
}

func TestForeignCursors(t *testing.T) {
	good := cursor{column: "key", epoch: 8, place: place{key: "k"}}
	raw, err := base64.RawURLEncoding.DecodeString(good.String())
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(b []byte) []byte) string {
		return base64.RawURLEncoding.EncodeToString(change(bytes.Clone(raw)))
	}
	for name, text := range map[string]string{
		"more bytes":      changed(func(b []byte) []byte { return append(b, 0) }),
		"fewer bytes":     changed(func(b []byte) []byte { return b[:len(b)-1] }),
		"a third order":   changed(func(b []byte) []byte { b[4] = 2; return b }),
		"a longer varint": changed(func(b []byte) []byte { return slices.Replace(b, 5, 6, 0x88, 0) }),
		"padding":         good.String() + "=",
		"other alphabet":  strings.Repeat("+", len(good.String())),
	} {
		if c, err := parseCursor(value{kindText, text}); err == nil {
			t.Errorf("%s: taken as %+v", name, c)
		}
	}
	if c, err := parseCursor(value{kindText, good.String()}); err != nil || c != good {
		t.Errorf("%+v, %v", c, err)
	}
}

// Instants mean something only within one reign, keys in every one.
func TestCursorOfAnotherReign(t *testing.T) {
	s := newServer(t, Config{}, nil)
	h := contract.Handler(t, s.Handler())
	for column, want := range map[string]int{"key": 200, "owner": 200, "token": 200, "lease": 400, "held_for": 400, "oldest_wait": 400} {
		c := cursor{column: column, epoch: 8}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost/v1/locks?sort="+column+"&cursor="+c.String(), nil))
		if rec.Code != want {
			t.Errorf("%s: %d %s", column, rec.Code, rec.Body)
		}
	}
}
