package ui

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// rowsOf makes n rows, many of which are equal in what they are sorted by.
func rowsOf(n int, seed uint64) []locks.Row {
	rnd := rand.New(rand.NewPCG(seed, 1))
	rows := make([]locks.Row, n)
	for i := range rows {
		r := &rows[i]
		r.Key, r.Slots = fmt.Sprintf("app/%07d/lock", rnd.Uint32N(1<<31)), 1
		if rnd.IntN(10) > 0 {
			r.Mode, r.Holders, r.Owner = locks.ModeExclusive, 1, fmt.Sprint("owner-", rnd.IntN(5))
			r.Token, r.HeldSince, r.LeaseEnds = locks.Token(rnd.Uint32N(1000)*8), locks.Time(rnd.IntN(50)), locks.Time(50+rnd.IntN(50))
		}
		if rnd.IntN(3) == 0 || r.Holders == 0 {
			r.Waiters, r.OldestWait = 1+rnd.Uint32N(4), locks.Time(rnd.IntN(60))
		}
	}
	slices.SortFunc(rows, func(a, b locks.Row) int { return strings.Compare(a.Key, b.Key) })
	rows = slices.CompactFunc(rows, func(a, b locks.Row) bool { return a.Key == b.Key })
	rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// Turning the pages, forwards from the first and backwards from the last, shows
// every row once, in the order of a plain sort, each under its own number.
func TestPagesOfEveryOrder(t *testing.T) {
	for seed := range uint64(3) {
		rows := rowsOf(333, seed)
		for i := range columns {
			for _, desc := range []bool{false, true} {
				c := &columns[i]
				t.Run(fmt.Sprintf("%d %s %v", seed, c.name, desc), func(t *testing.T) { turnAll(t, rows, c, desc) })
			}
		}
	}
}

func turnAll(t *testing.T, rows []locks.Row, c *column, desc bool) {
	match := func(r *locks.Row) bool { return r.Waiters > 0 }
	var want []string
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b locks.Row) int {
		p, q := c.place(&a), c.place(&b)
		d := cmp.Or(cmp.Compare(p.Number, q.Number), cmp.Compare(p.Token, q.Token), strings.Compare(p.Text, q.Text), strings.Compare(a.Key, b.Key))
		if desc {
			d = -d
		}
		return d
	})
	for i := range sorted {
		if match(&sorted[i]) {
			want = append(want, sorted[i].Key)
		}
	}
	for _, back := range []bool{false, true} {
		var got []string
		q := query{match: match, column: c, desc: desc, back: back, size: 50}
		for {
			s := q.run(rows)
			if len(s.rows) == 0 {
				break
			}
			if s.total != len(want) || s.rows[0].Key != want[s.first] {
				t.Fatalf("back %v: %d rows, the page begins with row %d, %s", back, s.total, s.first, s.rows[0].Key)
			}
			page := make([]string, len(s.rows))
			for i, r := range s.rows {
				page[i] = r.Key
			}
			edge := s.rows[len(s.rows)-1]
			if back {
				got, edge = append(page, got...), s.rows[0]
			} else {
				got = append(got, page...)
			}
			q.from = parsePlace(c.place(edge).String())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("back %v: got %d rows in another order than want's %d", back, len(got), len(want))
		}
	}
}

// What stands in an address and makes no sense is passed over.
func TestKeysQueryIsForgiving(t *testing.T) {
	v, _ := url.ParseQuery("sort=nothing&order=up&size=7&min_waiters=-1&state=gone&after=%20&before=x")
	q := parseKeysQuery(v, true)
	if q.column.name != "key" || q.desc || q.size != 50 || q.from != nil || q.back || q.match != nil {
		t.Errorf("got %+v", q)
	}
	if q := parseKeysQuery(url.Values{"sort": {"token"}}, false); q.column.name != "key" {
		t.Error("who may not see tokens can sort by them")
	}
}

func TestKeysFilter(t *testing.T) {
	row := &locks.Row{Key: "deploy/web", Owner: "ci", Holders: 1, Waiters: 2, Mode: locks.ModeExclusive}
	for filter, want := range map[string]bool{
		"": true, "q=deploy": true, "q=deploy*": true, "q=web": false, "q=*web": true, "q=*oy/w*": true, "q=*x*": false,
		"state=held": true, "state=free": false, "owner=ci": true, "owner=c": false, "min_waiters=2": true, "min_waiters=3": false,
		"q=deploy&owner=ci&state=held&min_waiters=1": true,
	} {
		v, _ := url.ParseQuery(filter)
		if q := parseKeysQuery(v, true); q.matches(row) != want {
			t.Errorf("%s: %v", filter, !want)
		}
	}
}

// Who may not operate sees no token: it is all that one needs to release a lock.
func TestTokensAreHidden(t *testing.T) {
	rows := &node.Rows{Rows: []locks.Row{{Key: "k", Owner: "o", Token: 4711, Holders: 1, Mode: locks.ModeExclusive}}}
	q := parseKeysQuery(url.Values{}, false)
	p := keysPageOf(q, rows, q.run(rows.Rows), false)
	if p.Rows[0].Token != "hidden" {
		t.Errorf("the token is shown as %q", p.Rows[0].Token)
	}
	v := locks.KeyView{Key: "k", Mode: locks.ModeExclusive, HoldersTotal: 1, Holders: []locks.HolderView{{Token: 4711}}}
	if h := keyPageOf(&v, 0, false, false).Holders[0]; h.Token != "hidden" || h.Force != "" {
		t.Errorf("the key's page shows %+v", h)
	}
}

// The page of a list says where in it it is, and where the others are.
func TestTurning(t *testing.T) {
	rows := &node.Rows{Rows: rowsOf(120, 1)}
	at := func(address string) keysPage {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := parseKeysQuery(u.Query(), true)
		return keysPageOf(q, rows, q.run(rows.Rows), true)
	}
	first := at("/ui/locks?sort=waiters&state=held")
	total := first.Total
	if first.Range != "1–50" || first.First != "" || first.Prev != "" || first.Next == "" {
		t.Errorf("first: %+v", first)
	}
	second := at(first.Next)
	if second.Range != "51–100" || at(second.Prev).Range != "1–50" || at(second.First).Range != "1–50" || second.Total != total {
		t.Errorf("second: %s of %s, before it %s", second.Range, second.Total, at(second.Prev).Range)
	}
	last := at(second.Last)
	if !strings.HasSuffix(last.Range, "–"+total) || last.Next != "" || last.Last != "" {
		t.Errorf("last: %s of %s, then %q", last.Range, last.Total, last.Next)
	}
}

// BenchmarkMillion is what the list costs beyond the snapshot that all share.
func BenchmarkMillion(b *testing.B) {
	rows := &node.Rows{Rows: rowsOf(1_000_000, 1)}
	for i := range rows.Rows {
		rows.Rows[i].Key = strings.Clone(rows.Rows[i].Key) // a snapshot has them in memory in the order of its rows
	}
	for _, address := range []string{"", "sort=waiters", "sort=held_for&q=*77*", "sort=lease&before=end&owner=owner-3"} {
		b.Run(address, func(b *testing.B) {
			v, _ := url.ParseQuery(address)
			for b.Loop() {
				q := parseKeysQuery(v, true)
				keysPageOf(q, rows, q.run(rows.Rows), true)
			}
		})
	}
}
