package web

import (
	"fmt"
	"net/http"
	"strings"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

type listInput struct {
	prefix     string
	contains   string
	state      string
	owner      *string
	minWaiters int
	sort       string
	order      string
	limit      *int
	cursor     *cursor
	local      bool // ask this node, whether or not it is the active
}

var listSchema = schema[listInput]{
	take("prefix", func(in *listInput) *string { return &in.prefix }, parseFilter),
	take("contains", func(in *listInput) *string { return &in.contains }, parseFilter),
	take("state", func(in *listInput) *string { return &in.state }, parseChoice("held", "free")),
	take("owner", func(in *listInput) **string { return &in.owner }, optional(parseLabel)),
	take("min_waiters", func(in *listInput) *int { return &in.minWaiters }, parseInt(1<<31-1)),
	take("sort", func(in *listInput) *string { return &in.sort }, parseChoice(columnNames()...)),
	take("order", func(in *listInput) *string { return &in.order }, parseChoice("asc", "desc")),
	take("limit", func(in *listInput) **int { return &in.limit }, optional(parseLimit)),
	take("cursor", func(in *listInput) **cursor { return &in.cursor }, optional(parseCursor)),
	take("local", func(in *listInput) *bool { return &in.local }, parseBool),
}

// parseLimit takes a page's length. A page of none would have no next one.
func parseLimit(v value) (int, error) {
	n, err := parseInt(mostListed)(v)
	if err != nil || n == 0 {
		err = fmt.Errorf("must be a whole number from 1 to %d", mostListed)
	}
	return n, err
}

// matches says whether a row passes the filters, those first that need not look
// into its texts.
func (in *listInput) matches(r *locks.Row) bool {
	return int64(r.Waiters) >= int64(in.minWaiters) &&
		(in.state == "" || in.state == stateOf(r.Mode)) &&
		(in.owner == nil || *in.owner == r.Owner && r.Holders > 0) &&
		strings.HasPrefix(r.Key, in.prefix) &&
		strings.Contains(r.Key, in.contains)
}

type listBody struct {
	Items      []itemBody `json:"items"`
	Total      int        `json:"total"`
	NextCursor *string    `json:"next_cursor"` // null on the last page
	AsOf       position   `json:"as_of"`
}

// position says of which state of the node an answer speaks.
type position struct {
	Epoch locks.Token `json:"epoch"`
	Seq   uint64      `json:"seq"`
}

// itemBody is one key of a listing. Where several hold it, owner, token, held_for
// and lease are those of the one with the lowest token; null where nobody does.
type itemBody struct {
	Key        string       `json:"key"`
	State      string       `json:"state"`
	Mode       *string      `json:"mode"`
	Slots      uint16       `json:"slots"`
	Holders    uint32       `json:"holders"`
	Owner      *string      `json:"owner"`
	Token      *locks.Token `json:"token"` // null too for those who may not see it
	HeldFor    *seconds     `json:"held_for"`
	Lease      *seconds     `json:"lease"`
	Waiters    uint32       `json:"waiters"`
	OldestWait *seconds     `json:"oldest_wait"` // null where nobody waits
}

func (s *Server) listing(r *http.Request, in listInput) *answer {
	open := identity(r).Operate
	sel, refusal := newSelection(&in, open)
	if refusal != nil {
		return refusal
	}
	rows := s.node.Rows()
	if in.cursor != nil && sel.column.timed && in.cursor.epoch != rows.Epoch {
		return badInput(&inputError{"cursor", "is from another reign, whose clock was another: begin at the first page"})
	}
	total := 0
	for i := range rows.Rows {
		if row := &rows.Rows[i]; in.matches(row) {
			total++
			sel.offer(row)
		}
	}
	page, more := sel.page()
	body := listBody{Items: make([]itemBody, len(page)), Total: total, AsOf: position{rows.Epoch, rows.Seq}}
	for i, row := range page {
		body.Items[i] = itemOf(row, rows, open)
	}
	if more {
		next := sel.cursorAt(page[len(page)-1], rows.Epoch).String()
		body.NextCursor = &next
	}
	return ok(body, fmt.Sprintf("%d keys", total))
}

func itemOf(r *locks.Row, rows *node.Rows, open bool) itemBody {
	b := itemBody{
		Key: r.Key, State: stateOf(r.Mode), Mode: modeOf(r.Mode), Slots: r.Slots, Holders: r.Holders, Waiters: r.Waiters,
	}
	if r.Holders > 0 {
		held, lease := seconds(rows.At.Sub(r.HeldSince)), seconds(r.LeaseEnds.Sub(rows.At))
		b.Owner, b.HeldFor, b.Lease = &r.Owner, &held, &lease
		if open {
			b.Token = &r.Token
		}
	}
	if r.Waiters > 0 {
		waited := seconds(rows.At.Sub(r.OldestWait))
		b.OldestWait = &waited
	}
	return b
}
