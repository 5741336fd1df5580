package ui

import (
	"net/http"
	"net/url"
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

const eventsShown = 200

func (u *UI) events(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	p := eventsPage{Kind: kindNamed(v.Get("kind")).name, Prefix: v.Get("prefix"), Empty: "Nothing has happened."}
	for _, k := range kinds {
		p.Kinds = append(p.Kinds, choice{k.title, eventsURL(k.name, p.Prefix), k.name == p.Kind})
	}
	p.frame = u.frame(r, "events", "Events")
	switch {
	case p.Kind == "grant" && p.Prefix == "":
		p.Empty = "Grants and releases are told for a prefix of keys only: name one above."
	case p.Kind == "grant":
		p.Watch, p.Empty = p.Prefix, "Nothing yet. Grants and releases are kept from when somebody watches them: this page does, where JavaScript is on."
		fallthrough
	default:
		p.Events = eventRows(u.cfg.Events(EventFilter{Kind: p.Kind, Prefix: p.Prefix}, eventsShown), p.now)
	}
	if p.Kind != "grant" && p.Kind+p.Prefix != "" {
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
