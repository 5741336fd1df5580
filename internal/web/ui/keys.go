package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// keysPage is the list of keys.
type keysPage struct {
	frame
	Filter  keysFilter
	Columns []header
	Rows    []keyRow
	Total   string // keys that fit the filter
	All     string // keys in all, where the filter leaves some out; else ""
	Range   string // 1–50
	First   string // addresses of pages; "" = this is it
	Prev    string
	Next    string
	Last    string
	Sizes   []choice
	AsOf    moment
}

// keysFilter is what the form of the page holds.
type keysFilter struct {
	Text       string // a prefix, or *a part
	State      string
	Owner      string
	MinWaiters string
	Sort       string
	Order      string
	Size       string
	On         bool // it leaves something out
}

// header is the head of a sortable column.
type header struct {
	Title string
	Sort  string // ascending, descending or none, for aria-sort
	URL   string // sorts by it, or the other way round
	Right bool
	Extra bool // left out where there is no room
}

type choice struct {
	Text string
	URL  string
	On   bool
}

// keyRow is one key of a list.
type keyRow struct {
	Key     []run
	URL     string
	Mode    string
	Owner   []run // empty where nobody holds it
	More    string
	Token   string
	HeldFor string
	Lease   string
	Bar     int // hundredths of the lease that are left
	Low     bool
	Waiters string
	Oldest  string
}

var pageSizes = []int{50, 100, 500}

// keysQuery is a request for the page, judged. What makes no sense in it is
// taken for the default: it is an address, which people cut and mend.
type keysQuery struct {
	values url.Values
	query
	prefix, contains string
	state, owner     string
	minWaiters       int
}

func parseKeysQuery(v url.Values, operate bool) *keysQuery {
	q := &keysQuery{values: url.Values{}}
	q.column, q.size = &columns[0], pageSizes[0]
	if c := columnNamed(v.Get("sort")); c != nil && (operate || c.name != "token") {
		q.column = c
	}
	q.desc = q.column.desc
	if order := v.Get("order"); order == "asc" || order == "desc" {
		q.desc = order == "desc"
	}
	if n, err := strconv.Atoi(v.Get("size")); err == nil && slices.Contains(pageSizes, n) {
		q.size = n
	}
	if n, err := strconv.Atoi(v.Get("min_waiters")); err == nil && n > 0 {
		q.minWaiters = n
	}
	if s := v.Get("state"); s == "held" || s == "free" {
		q.state = s
	}
	q.owner = v.Get("owner")
	if text := v.Get("q"); strings.HasPrefix(text, "*") {
		q.contains = strings.TrimSuffix(text[1:], "*")
	} else {
		q.prefix = strings.TrimSuffix(text, "*")
	}
	if text := v.Get("before"); text == "end" {
		q.back = true
	} else if q.from = parsePlace(text); q.from != nil {
		q.back = true
	} else {
		q.from = parsePlace(v.Get("after"))
	}
	for _, name := range []string{"q", "state", "owner", "min_waiters", "sort", "order", "size"} {
		if v.Get(name) != "" {
			q.values.Set(name, v.Get(name))
		}
	}
	q.match = q.matches
	if !q.filters() {
		q.match = nil
	}
	return q
}

func (q *keysQuery) filters() bool {
	return q.prefix != "" || q.contains != "" || q.state != "" || q.owner != "" || q.minWaiters > 0
}

// matches looks first at what needs no text.
func (q *keysQuery) matches(r *locks.Row) bool {
	return int64(r.Waiters) >= int64(q.minWaiters) &&
		(q.state == "" || (q.state == "held") == (r.Mode != locks.ModeFree)) &&
		(q.owner == "" || q.owner == r.Owner) &&
		strings.HasPrefix(r.Key, q.prefix) &&
		strings.Contains(r.Key, q.contains)
}

// url is the address of this list with some values changed; "" takes one out.
func (q *keysQuery) url(pairs ...string) string {
	v := url.Values{}
	for name, texts := range q.values {
		v[name] = texts
	}
	for i := 0; i < len(pairs); i += 2 {
		if v.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			v.Del(pairs[i])
		}
	}
	if len(v) == 0 {
		return "/ui/locks"
	}
	return "/ui/locks?" + v.Encode()
}

func (u *UI) keys(w http.ResponseWriter, r *http.Request) {
	operate := u.cfg.Viewer(r).Operate
	q := parseKeysQuery(r.URL.Query(), operate)
	rows := u.cfg.Node.Rows()
	page := keysPageOf(q, rows, q.run(rows.Rows), operate)
	page.AsOf = momentOf(u.cfg.Node.WallTime(rows.At))
	page.frame = u.frame(r, "locks", "Keys")
	write(w, r, http.StatusOK, keysView(page))
}

func keysPageOf(q *keysQuery, rows *node.Rows, s selected, operate bool) keysPage {
	p := keysPage{
		Filter: keysFilter{
			Text: q.values.Get("q"), State: q.state, Owner: q.owner, MinWaiters: q.values.Get("min_waiters"),
			Sort: q.values.Get("sort"), Order: q.values.Get("order"), Size: q.values.Get("size"), On: q.filters(),
		},
		Columns: headers(q, operate), Total: number(s.total), Range: "none",
	}
	if s.total != len(rows.Rows) {
		p.All = number(len(rows.Rows))
	}
	for _, r := range s.rows {
		p.Rows = append(p.Rows, keyRowOf(r, rows.At, operate))
	}
	for _, n := range pageSizes {
		p.Sizes = append(p.Sizes, choice{strconv.Itoa(n), q.url("size", strconv.Itoa(n)), n == q.size})
	}
	p.turn(q, s)
	return p
}

// turn sets the addresses of the pages around this one.
func (p *keysPage) turn(q *keysQuery, s selected) {
	if len(s.rows) == 0 {
		if s.total > 0 { // beyond an end
			p.First, p.Last = q.url(), q.url("before", "end")
		}
		return
	}
	p.Range = number(s.first+1) + "–" + number(s.first+len(s.rows))
	if s.first > 0 {
		p.First, p.Prev = q.url(), q.url("before", q.column.place(s.rows[0]).String())
	}
	if s.first+len(s.rows) < s.total {
		p.Next, p.Last = q.url("after", q.column.place(s.rows[len(s.rows)-1]).String()), q.url("before", "end")
	}
}

func headers(q *keysQuery, operate bool) []header {
	var all []header
	for i := range columns {
		c := &columns[i]
		h := header{Title: c.title, Right: c.right, Extra: c.extra, Sort: "none"}
		desc := c.desc
		if c == q.column {
			desc = !q.desc
			if h.Sort = "ascending"; q.desc {
				h.Sort = "descending"
			}
		}
		order := "asc"
		if desc {
			order = "desc"
		}
		if h.URL = q.url("sort", c.name, "order", order); c.name == "token" && !operate {
			h.URL = ""
		}
		all = append(all, h)
	}
	return all
}

func keyURL(key string) string { return "/ui/lock?key=" + url.QueryEscape(key) }

func keyRowOf(r *locks.Row, at locks.Time, operate bool) keyRow {
	row := keyRow{Key: runs(r.Key), URL: keyURL(r.Key), Mode: modeText(r.Mode, r.Slots), Waiters: number(r.Waiters)}
	if r.Holders > 0 {
		row.Owner, row.Token = ownerRuns(r.Owner), "hidden"
		if operate {
			row.Token = tokenText(r.Token)
		}
		if r.Holders > 1 {
			row.More = "+" + number(r.Holders-1)
		}
		left, held := max(r.LeaseEnds.Sub(at), 0), at.Sub(r.HeldSince)
		row.HeldFor, row.Lease = span(held), span(left)
		row.Bar, row.Low = share(left, held+left), left < lowLease
	}
	if r.Waiters > 0 {
		row.Oldest = span(at.Sub(r.OldestWait))
	}
	return row
}

// lowLease is what is left of a lease that is about to end.
const lowLease = 5 * time.Second

// share is part in hundredths of whole, at most all of it.
func share(part, whole time.Duration) int {
	if whole <= 0 {
		return 0
	}
	return int(min(max(part, 0), whole) * 100 / whole)
}

func modeText(m locks.Mode, slots uint16) string {
	if m == locks.ModeSemaphore {
		return "semaphore " + strconv.Itoa(int(slots))
	}
	return m.String()
}
