package ui

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"holdfast/internal/locks"
)

// keyPage is all about one key.
type keyPage struct {
	frame
	Key       []run
	Raw       string // as it is
	State     string // held or free
	Mode      string
	Slots     string
	Holders   []holderRow
	HeldBy    string // how many
	Waiters   []waiterRow
	WaitedBy  string
	Forecast  string // what happens next
	Events    []eventRow
	NoEvents  string
	Operable  bool // the viewer may force and remove
	Following string
}

type holderRow struct {
	Owner     []run
	Remote    string
	Transport string
	Identity  string
	Token     string
	HeldFor   string
	Lease     string
	Bar       int
	Low       bool
	Shared    bool
	Force     string // the form that ends it; "" = none
}

type waiterRow struct {
	Position  string
	Owner     []run
	Remote    string
	Waited    string
	Left      string
	Shared    bool
	Connected bool
	Remove    string // the form that takes it out; "" = none
}

const (
	holdersShown = 100
	waitersShown = 200
	eventsOfKey  = 20
)

func (u *UI) key(w http.ResponseWriter, r *http.Request) {
	key, ok := u.keyOf(w, r, r.URL.Query().Get("key"))
	if !ok {
		return
	}
	now := u.cfg.Node.Now()
	v, _, _ := u.cfg.Node.View([]byte(key), holdersShown, waitersShown)
	viewer := u.cfg.Viewer(r)
	acts := viewer.Operate && u.cfg.Mode == Full && u.cfg.Active().Here
	p := keyPageOf(&v, now, viewer.Operate, acts)
	p.frame = u.frame(r, "locks", "Key")
	p.Flash = flashOf(r.URL.Query(), key)
	p.Following = r.URL.RequestURI()
	p.NoEvents = "Nothing is remembered of this key."
	p.Events = eventRows(u.cfg.Events(EventFilter{Key: key}, eventsOfKey), p.now)
	write(w, r, http.StatusOK, keyView(p))
}

// keyOf judges a key that came in an address or a form.
func (u *UI) keyOf(w http.ResponseWriter, r *http.Request, key string) (string, bool) {
	if key != "" && len(key) <= locks.MaxKeyLength && utf8.ValidString(key) {
		return key, true
	}
	u.say(w, r, http.StatusBadRequest, notice{
		frame: u.frame(r, "locks", "No such key"),
		Text:  fmt.Sprintf("A key has 1 to %d bytes of UTF-8; this address has none like that.", locks.MaxKeyLength),
		Link:  "/ui/locks", Go: "Keys",
	})
	return "", false
}

func keyPageOf(v *locks.KeyView, now locks.Time, operate, acts bool) keyPage {
	p := keyPage{
		Key: runs(v.Key), Raw: v.Key, State: "held", Mode: modeText(v.Mode, v.Slots), Slots: number(v.Slots),
		HeldBy: number(v.HoldersTotal), WaitedBy: number(v.WaitersTotal), Forecast: forecast(v), Operable: acts,
	}
	if v.Mode == locks.ModeFree {
		p.State = "free"
	}
	for i := range v.Holders {
		p.Holders = append(p.Holders, holderRowOf(v.Key, &v.Holders[i], now, operate, acts))
	}
	for i := range v.Waiters {
		p.Waiters = append(p.Waiters, waiterRowOf(v.Key, &v.Waiters[i], now, acts))
	}
	return p
}

func holderRowOf(key string, h *locks.HolderView, now locks.Time, operate, acts bool) holderRow {
	held := now.Sub(h.Since)
	row := holderRow{
		Owner: ownerRuns(h.Origin.Owner), Remote: orElse(h.Origin.Remote, "–"), Transport: orElse(h.Origin.Transport, "–"),
		Identity: h.Origin.Identity, Token: "hidden", HeldFor: span(held), Lease: span(h.Lease),
		Bar: share(h.Lease, held+h.Lease), Low: h.Lease < lowLease, Shared: h.Shared,
	}
	if operate {
		row.Token = tokenText(h.Token)
	}
	if acts {
		row.Force = "/ui/force?" + url.Values{"key": {key}, "token": {tokenText(h.Token)}}.Encode()
	}
	return row
}

func waiterRowOf(key string, w *locks.WaiterView, now locks.Time, acts bool) waiterRow {
	row := waiterRow{
		Position: number(w.Position), Owner: ownerRuns(w.Origin.Owner), Remote: orElse(w.Origin.Remote, "–"),
		Waited: span(now.Sub(w.Since)), Left: "no bound", Shared: w.Shared, Connected: w.Connected,
	}
	if w.Wait > 0 {
		row.Left = span(w.Wait)
	}
	if acts && !w.Ticket.IsZero() {
		row.Remove = "/ui/remove?" + url.Values{"key": {key}, "ticket": {hex.EncodeToString(w.Ticket[:])}}.Encode()
	}
	return row
}

// forecast says what happens next.
func forecast(v *locks.KeyView) string {
	switch {
	case v.HoldersTotal == 0 && v.WaitersTotal == 0:
		return "Whoever asks for this key gets it at once."
	case v.HoldersTotal == 0:
		return "It is about to be given to the first in line."
	}
	soonest := v.Holders[0].Lease
	for i := range v.Holders {
		soonest = min(soonest, v.Holders[i].Lease)
	}
	ends := "If its holder does nothing, the lease runs out in " + span(soonest)
	if v.HoldersTotal > 1 {
		ends = "If its holders do nothing, the first lease runs out in " + span(soonest)
	}
	if v.WaitersTotal == 0 {
		return ends + ", and the key is free then."
	}
	next := orElse(v.Waiters[0].Origin.Owner, "a client without a label")
	text := ends + "; then the first in line gets it"
	if plain := runs(next); len(plain) == 1 && !plain[0].Code {
		text += ": “" + next + "”"
	}
	if w := v.Waiters[0].Wait; w > 0 && w < soonest {
		text += ", unless it stops waiting before, in " + span(w)
	}
	return text + "."
}

// flashOf says what a form has done, from the address that it led to.
func flashOf(v url.Values, key string) *flash {
	texts := map[string]string{
		"forced":  "The lock was taken from its holder:",
		"removed": "The waiter was taken out of the queue of",
	}
	if text := texts[v.Get("done")]; text != "" {
		return &flash{"good", text, runs(key)}
	}
	return nil
}

// whole is a duration to the second, for what is read out before a decision.
func whole(d time.Duration) string { return span(d.Truncate(time.Second)) }
