package ui

import (
	"encoding/hex"
	"net/http"
	"strings"

	"holdfast/internal/locks"
)

// removePage is the form that takes a waiter out of a queue.
type removePage struct {
	frame
	Key      []run
	Raw      string
	KeyURL   string
	Ticket   string
	Position string
	Owner    []run
	Remote   string
	Waited   string
	Reason   string
	Problem  string
	Gone     bool // it does not wait any more
}

func (u *UI) removeForm(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	if !u.mayAct(w, r, "Remove waiter") {
		return
	}
	key, ok := u.keyOf(w, r, v.Get("key"))
	if !ok {
		return
	}
	p := u.removePage(r, key, v.Get("ticket"))
	if p.Gone {
		p.Problem = "This attempt does not wait any more."
	}
	write(w, r, http.StatusOK, removeView(p))
}

func (u *UI) removePage(r *http.Request, key, ticket string) removePage {
	v, _, _ := u.cfg.Node.View([]byte(key), 0, searched)
	now := u.cfg.Node.Now()
	p := removePage{
		frame: u.frame(r, "locks", "Remove waiter"), Key: runs(key), Raw: key, KeyURL: keyURL(key), Ticket: ticket, Gone: true,
	}
	p.Live = false
	for i := range v.Waiters {
		if w := &v.Waiters[i]; !w.Ticket.IsZero() && hex.EncodeToString(w.Ticket[:]) == ticket {
			p.Gone, p.Position = false, number(w.Position)
			p.Owner, p.Remote, p.Waited = ownerRuns(w.Origin.Owner), orElse(w.Origin.Remote, "–"), whole(now.Sub(w.Since))
		}
	}
	return p
}

func (u *UI) remove(w http.ResponseWriter, r *http.Request) {
	in, ok := u.form(w, r)
	if !ok || !u.mayAct(w, r, "Remove waiter") {
		return
	}
	key, ok := u.keyOf(w, r, in.Get("key"))
	if !ok {
		return
	}
	reason := strings.TrimSpace(in.Get("reason"))
	refuse := func(status int, problem string) {
		p := u.removePage(r, key, in.Get("ticket"))
		p.Problem, p.Reason = problem, reason
		write(w, r, status, removeView(p))
	}
	var ticket locks.Ticket
	raw, err := hex.DecodeString(in.Get("ticket"))
	copy(ticket[:], raw)
	switch {
	case err != nil || len(raw) != len(ticket):
		refuse(http.StatusBadRequest, "The form has no ticket. Nothing was changed.")
	case reason == "" || len(reason) > maxReasonBytes:
		refuse(http.StatusBadRequest, "A reason is needed, of at most 256 bytes: it goes into the events and the log. Nothing was changed.")
	default:
		u.removeNow(w, r, key, ticket, reason, refuse)
	}
}

func (u *UI) removeNow(w http.ResponseWriter, r *http.Request, key string, ticket locks.Ticket, reason string, refuse func(int, string)) {
	reply, ok := u.cfg.Ask(r, locks.Command{Op: locks.OpRemoveWaiter, Key: []byte(key), Ticket: ticket})
	if ok {
		u.audit(r, Action{Kind: "remove-waiter", Key: key, Ticket: ticket, Reason: reason, Result: reply.Code})
	}
	switch {
	case !ok:
		refuse(http.StatusServiceUnavailable, "The node did not answer in time: whether it was done is not known. Look at the key again.")
	case reply.Code == locks.WaiterRemoved:
		http.Redirect(w, r, keyURL(key)+"&done=removed", http.StatusSeeOther)
	default:
		refuse(http.StatusConflict, "This attempt does not wait any more. Nothing was changed.")
	}
}
