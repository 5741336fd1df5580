package ui

import (
	"net/http"
	"net/url"
	"slices"
	"time"
)

// eventsPage is what has happened.
type eventsPage struct {
	frame
	Kinds  []choice
	Kind   string
	Prefix string
	Events []eventRow
	Empty  string
}

type eventRow struct {
	At     moment
	Ago    string
	Kind   string
	Weight string // news, warning or alarm
	Key    []run
	URL    string
	Owner  []run
	Token  string
	Text   []run
	Who    []run // of an operator's action
	From   string
	Why    []run
	Result string
	Gap    string // how many before it are lost
}

// eventKinds are those that the page can be narrowed to, with their titles.
var eventKinds = []struct{ kind, title string }{
	{"", "All"}, {"role", "Roles"}, {"handoff", "Hand-offs"}, {"peer", "Peers"}, {"merge", "Merges"},
	{"expired", "Ran out"}, {"timeout", "Timeouts"}, {"operator", "Operators"}, {"auth", "Auth failures"},
	{"limit", "Limits"}, {"grant", "Grants and releases"},
}

const eventsShown = 200

func (u *UI) events(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	p := eventsPage{Kind: v.Get("kind"), Prefix: v.Get("prefix"), Empty: "Nothing has happened."}
	if !slices.ContainsFunc(eventKinds, func(k struct{ kind, title string }) bool { return k.kind == p.Kind }) {
		p.Kind = ""
	}
	for _, k := range eventKinds {
		p.Kinds = append(p.Kinds, choice{k.title, eventsURL(k.kind, p.Prefix), k.kind == p.Kind})
	}
	p.frame = u.frame(r, "events", "Events")
	switch {
	case u.cfg.Events == nil:
		p.Empty = "This node keeps no events."
	case p.Kind == "grant" && p.Prefix == "":
		p.Empty = "Grants and releases are told for a prefix of keys only: name one above."
	default:
		p.Events = eventRows(u.cfg.Events(EventFilter{Kind: p.Kind, Prefix: p.Prefix}, eventsShown), p.now)
	}
	if p.Events == nil && (p.Kind != "" || p.Prefix != "") && p.Empty == "Nothing has happened." {
		p.Empty = "Nothing that fits the filter is remembered."
	}
	write(w, r, http.StatusOK, eventsView(p))
}

func eventsURL(kind, prefix string) string {
	v := url.Values{}
	if kind != "" {
		v.Set("kind", kind)
	}
	if prefix != "" {
		v.Set("prefix", prefix)
	}
	if len(v) == 0 {
		return "/ui/events"
	}
	return "/ui/events?" + v.Encode()
}

func eventRows(events []Event, now time.Time) []eventRow {
	var all []eventRow
	for i := range events {
		all = append(all, eventRowOf(&events[i], now))
	}
	return all
}

func eventRowOf(e *Event, now time.Time) eventRow {
	row := eventRow{
		At: momentOf(e.At), Ago: span(now.Sub(e.At)), Kind: e.Kind, Weight: [...]string{"news", "warning", "alarm"}[e.Weight],
		Text: runs(e.Text), Who: runs(e.Who), From: e.From, Result: e.Result,
	}
	if e.Why != "" {
		row.Why = runs("“" + e.Why + "”")
	}
	if e.Key != "" {
		row.Key, row.URL = runs(e.Key), keyURL(e.Key)
	}
	if e.Owner != "" {
		row.Owner = runs(e.Owner)
	}
	if e.Token != 0 {
		row.Token = tokenText(e.Token)
	}
	if e.Gap > 0 {
		row.Gap = number(e.Gap)
	}
	return row
}
