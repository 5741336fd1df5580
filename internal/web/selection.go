package web

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"holdfast/internal/locks"
)

// column is something that a listing can be sorted by: a number or a text of
// each row. Times are compared as the instants behind them, so that a row keeps
// its place from page to page while they pass.
type column struct {
	name   string
	timed  bool // its numbers are instants of one process's clock
	number func(r *locks.Row) int64
	text   func(r *locks.Row) string
}

// none sorts before every number: a key that nobody holds has been held for less
// than any other.
const none = math.MinInt64

var columns = []column{
	{name: "key"},
	{name: "mode", number: func(r *locks.Row) int64 { return int64(r.Mode) }},
	{name: "owner", text: func(r *locks.Row) string { return r.Owner }},
	{name: "token", number: func(r *locks.Row) int64 { return int64(r.Token) }},
	{name: "held_for", timed: true, number: func(r *locks.Row) int64 { return numberIf(r.Holders, -r.HeldSince) }},
	{name: "lease", timed: true, number: func(r *locks.Row) int64 { return numberIf(r.Holders, r.LeaseEnds) }},
	{name: "waiters", number: func(r *locks.Row) int64 { return int64(r.Waiters) }},
	{name: "oldest_wait", timed: true, number: func(r *locks.Row) int64 { return numberIf(r.Waiters, -r.OldestWait) }},
}

func numberIf(any uint32, t locks.Time) int64 {
	if any == 0 {
		return none
	}
	return int64(t)
}

func columnNames() []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// place is where a row stands in the order of a column. Keys are unique, so no
// two rows stand at one place.
type place struct {
	number int64
	text   string
	key    string
}

func (c *column) place(r *locks.Row) place {
	p := place{key: r.Key}
	if c.number != nil {
		p.number = c.number(r)
	}
	if c.text != nil {
		p.text = c.text(r)
	}
	return p
}

func (p *place) compare(q *place) int {
	if c := cmp.Compare(p.number, q.number); c != 0 {
		return c
	}
	if c := strings.Compare(p.text, q.text); c != 0 {
		return c
	}
	return strings.Compare(p.key, q.key)
}

// selection keeps the first rows after a cursor of all that it is offered. It
// needs memory for two pages, however many rows there are.
type selection struct {
	column *column
	desc   bool
	after  *place // nil: from the start
	keep   int    // one more than a page, to see whether another follows

	best []candidate // at most 2·keep
	last *place      // of the worst that is kept, once there are enough: what comes after it is out
}

type candidate struct {
	place
	row *locks.Row
}

// newSelection reads sort, order, limit and cursor. Who may not see tokens can't
// have them in a cursor either.
func newSelection(in *listInput, open bool) (*selection, *answer) {
	s := &selection{column: &columns[0], desc: in.order == "desc", keep: defaultListed + 1}
	for i := range columns {
		if columns[i].name == in.sort {
			s.column = &columns[i]
		}
	}
	if s.column.name == "token" && !open {
		return nil, fail(codeNotAllowed, "sort: tokens are shown only to an identity with the scope operate")
	}
	if in.limit != nil {
		s.keep = *in.limit + 1
	}
	if c := in.cursor; c != nil {
		if c.column != s.column.name || c.desc != s.desc {
			return nil, badInput(&inputError{"cursor", "belongs to another sort or order"})
		}
		s.after = &c.place
	}
	return s, nil
}

func (s *selection) compare(p, q *place) int {
	if s.desc {
		return q.compare(p)
	}
	return p.compare(q)
}

// offer considers a row.
func (s *selection) offer(r *locks.Row) {
	p := s.column.place(r)
	if s.after != nil && s.compare(&p, s.after) <= 0 || s.last != nil && s.compare(&p, s.last) >= 0 {
		return
	}
	if s.best = append(s.best, candidate{p, r}); len(s.best) == 2*s.keep {
		s.shrink()
	}
}

// shrink throws out what can't be among the first keep rows.
func (s *selection) shrink() {
	slices.SortFunc(s.best, func(a, b candidate) int { return s.compare(&a.place, &b.place) })
	if len(s.best) >= s.keep {
		s.best = s.best[:s.keep]
		last := s.best[s.keep-1].place
		s.last = &last
	}
}

// page returns the rows of the page in order, and whether another one follows.
func (s *selection) page() (rows []*locks.Row, more bool) {
	s.shrink()
	more = len(s.best) == s.keep
	if more {
		s.best = s.best[:s.keep-1]
	}
	rows = make([]*locks.Row, len(s.best))
	for i := range s.best {
		rows[i] = s.best[i].row
	}
	return rows, more
}

// cursorAt names the place of a row, for the page after it.
func (s *selection) cursorAt(r *locks.Row, epoch locks.Token) cursor {
	return cursor{column: s.column.name, desc: s.desc, epoch: epoch, place: s.column.place(r)}
}
