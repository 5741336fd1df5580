package ui

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"holdfast/internal/locks"
)

// column is something that keys can be sorted by.
type column struct {
	name   string // in the URL
	title  string
	right  bool // numbers stand on the right
	desc   bool // the more interesting order comes first
	extra  bool // left out where there is no room
	number func(r *locks.Row) int64
	text   func(r *locks.Row) string
}

// Times are compared as the instants behind them: a row keeps its place while
// they pass. What nobody holds has been held for less than anything else.
const none = math.MinInt64

func numberIf(any uint32, t locks.Time) int64 {
	if any == 0 {
		return none
	}
	return int64(t)
}

var columns = []column{
	{name: "key", title: "Key", text: func(r *locks.Row) string { return r.Key }},
	{name: "mode", title: "Mode", extra: true, number: func(r *locks.Row) int64 { return int64(r.Mode) }},
	{name: "owner", title: "Holder", text: func(r *locks.Row) string { return r.Owner }},
	{name: "token", title: "Token", right: true, desc: true, extra: true, number: func(r *locks.Row) int64 { return int64(r.Token) }},
	{name: "held_for", title: "Held for", right: true, desc: true, number: func(r *locks.Row) int64 { return numberIf(r.Holders, -r.HeldSince) }},
	{name: "lease", title: "Lease left", right: true, number: func(r *locks.Row) int64 { return numberIf(r.Holders, r.LeaseEnds) }},
	{name: "waiters", title: "Waiters", right: true, desc: true, number: func(r *locks.Row) int64 { return int64(r.Waiters) }},
	{name: "oldest_wait", title: "Longest wait", right: true, desc: true, number: func(r *locks.Row) int64 { return numberIf(r.Waiters, -r.OldestWait) }},
}

func columnNamed(name string) *column {
	for i := range columns {
		if columns[i].name == name {
			return &columns[i]
		}
	}
	return nil
}

// place is where a row stands in an order. Numbers first, and among equal ones
// the token, so that a walk over a million rows seldom looks into their texts.
type place struct {
	Number int64  `json:"n,omitempty"`
	Token  int64  `json:"t,omitempty"`
	Text   string `json:"s,omitempty"`
	Key    string `json:"k,omitempty"`
}

func (c *column) place(r *locks.Row) place {
	if c.number != nil {
		return place{Number: c.number(r), Token: int64(r.Token), Key: r.Key}
	}
	return place{Text: c.text(r), Key: r.Key}
}

func (p *place) compare(q *place) int {
	switch {
	case p.Number != q.Number:
		return cmp.Compare(p.Number, q.Number)
	case p.Token != q.Token:
		return cmp.Compare(p.Token, q.Token)
	}
	if c := strings.Compare(p.Text, q.Text); c != 0 {
		return c
	}
	return strings.Compare(p.Key, q.Key)
}

// String is a place as it stands in a URL.
func (p place) String() string {
	text, _ := json.Marshal(p) // numbers and texts always can be
	return base64.RawURLEncoding.EncodeToString(text)
}

// parsePlace reads what String wrote; nil for anything else.
func parsePlace(text string) *place {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	p := new(place)
	if json.Unmarshal(raw, p) != nil {
		return nil
	}
	return p
}

// query chooses a page of rows.
type query struct {
	match  func(r *locks.Row) bool // nil = every row
	column *column
	desc   bool
	from   *place // the page lies after it; nil = at an end of the order
	back   bool   // the page lies before from; without one it is the last
	size   int
}

// selected is a page.
type selected struct {
	rows  []*locks.Row
	first int // how many rows come before it
	total int // rows that match
}

// candidate is a row that may be on the page.
type candidate struct {
	place
	row *locks.Row
}

// run finds the page in one walk over the rows, with memory for two pages.
func (q *query) run(rows []locks.Row) selected {
	s := selected{}
	best := make([]candidate, 0, 2*q.size)
	passed := 0 // rows that the walk meets before the page
	var worst *place
	shrink := func() {
		slices.SortFunc(best, func(a, b candidate) int { return q.compare(&a.place, &b.place) })
		if len(best) >= q.size {
			best = best[:q.size]
			last := best[q.size-1].place
			worst = &last
		}
	}
	for i := range rows {
		r := &rows[i]
		if q.match != nil && !q.match(r) {
			continue
		}
		s.total++
		p := q.column.place(r)
		if q.from != nil && q.compare(&p, q.from) <= 0 {
			passed++
			continue
		}
		if worst != nil && q.compare(&p, worst) >= 0 {
			continue
		}
		if best = append(best, candidate{p, r}); len(best) == 2*q.size {
			shrink()
		}
	}
	shrink()
	s.rows, s.first = make([]*locks.Row, len(best)), passed
	for i := range best {
		s.rows[i] = best[i].row
	}
	if q.back {
		slices.Reverse(s.rows)
		s.first = s.total - passed - len(best)
	}
	return s
}

// compare is the direction of the walk: a page that lies before a place is
// looked for backwards.
func (q *query) compare(a, b *place) int {
	if q.desc != q.back {
		return b.compare(a)
	}
	return a.compare(b)
}
