package ui

import (
	"net/http"
	"strconv"
	"strings"

	"holdfast/internal/locks"
)

// forcePage is the form that takes a lock from its holder.
type forcePage struct {
	frame
	Key     []run
	Raw     string
	KeyURL  string
	Token   string
	Owner   []run
	Remote  string
	HeldFor string
	Lease   string
	Next    []run // the first in line; empty = nobody waits
	Waiting string
	Reason  string // as it was typed
	Typed   string
	Problem string // why nothing was done; "" = nothing was tried
	Changed bool   // the holder is another one than the form was made for
	Gone    bool   // nobody holds the key any more
}

const maxReasonBytes = 256

// searched is how many holders, or places of a queue, are looked through for the
// one that a form is about. The key's page links to fewer, and whoever stands on
// it only moves forward: more would hold up the node for nothing.
const searched = 1000

// mayAct says whether a form may be shown or taken, and answers where not.
func (u *UI) mayAct(w http.ResponseWriter, r *http.Request, title string) bool {
	n := notice{frame: u.frame(r, "locks", title), Link: "/ui/locks", Go: "Keys"}
	switch {
	case !u.cfg.Viewer(r).Operate:
		n.Text = "This needs an identity with the scope operate. Nothing was changed."
		u.say(w, r, http.StatusForbidden, n)
		return false
	case !u.cfg.Active().Here:
		n.Text = "This node is not the active: it can't take a lock from anybody. Nothing was changed."
		if n.Replica != nil && n.Replica.URL != "" {
			n.Text += " Open the page on the active, and decide by what it shows there."
			n.Link, n.Go = n.Replica.URL, "Open "+n.Replica.Active
		}
		u.say(w, r, http.StatusConflict, n)
		return false
	}
	return true
}

func (u *UI) forceForm(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	if !u.mayAct(w, r, "Force release") {
		return
	}
	key, ok := u.keyOf(w, r, v.Get("key"))
	if !ok {
		return
	}
	p := u.forcePage(r, key, v.Get("token"))
	if p.Gone || p.Changed {
		p.Problem = "The holder is another one than on the page that you came from."
	}
	write(w, r, http.StatusOK, forceView(p))
}

// forcePage shows the holder that has the token, or else who holds the key now.
func (u *UI) forcePage(r *http.Request, key, token string) forcePage {
	v, _, _ := u.cfg.Node.View([]byte(key), searched, 1)
	now := u.cfg.Node.Now()
	p := forcePage{frame: u.frame(r, "locks", "Force release"), Key: runs(key), Raw: key, KeyURL: keyURL(key), Waiting: number(v.WaitersTotal)}
	p.Live = false
	if len(v.Waiters) > 0 {
		p.Next = ownerRuns(v.Waiters[0].Origin.Owner)
	}
	if len(v.Holders) == 0 {
		p.Gone = true
		return p
	}
	h := &v.Holders[0]
	p.Changed = true
	for i := range v.Holders {
		if tokenText(v.Holders[i].Token) == token {
			h, p.Changed = &v.Holders[i], false
		}
	}
	p.Token, p.Owner, p.Remote = tokenText(h.Token), ownerRuns(h.Origin.Owner), orElse(h.Origin.Remote, "–")
	p.HeldFor, p.Lease = whole(now.Sub(h.Since)), whole(h.Lease)
	return p
}

func (u *UI) force(w http.ResponseWriter, r *http.Request) {
	in, ok := u.form(w, r)
	if !ok || !u.mayAct(w, r, "Force release") {
		return
	}
	key, ok := u.keyOf(w, r, in.Get("key"))
	if !ok {
		return
	}
	token, err := strconv.ParseUint(in.Get("token"), 10, 64)
	reason, typed := strings.TrimSpace(in.Get("reason")), in.Get("typed")
	refuse := func(status int, problem string) {
		p := u.forcePage(r, key, in.Get("token"))
		p.Problem, p.Reason, p.Typed = problem, reason, typed
		if p.Changed || p.Gone {
			p.Typed = "" // for another holder one decides anew
			if status != http.StatusConflict {
				p.Problem += " The holder has changed, too."
			}
		}
		write(w, r, status, forceView(p))
	}
	switch {
	case err != nil:
		refuse(http.StatusBadRequest, "The form has no token. Nothing was changed.")
	case typed != key:
		refuse(http.StatusBadRequest, "What you typed is not the key. Nothing was changed.")
	case reason == "" || len(reason) > maxReasonBytes:
		refuse(http.StatusBadRequest, "A reason is needed, of at most 256 bytes: it goes into the events and the log. Nothing was changed.")
	default:
		u.forceNow(w, r, key, locks.Token(token), reason, refuse)
	}
}

// forceNow does it, and says how it went.
func (u *UI) forceNow(w http.ResponseWriter, r *http.Request, key string, token locks.Token, reason string, refuse func(int, string)) {
	reply, ok := u.cfg.Ask(r, locks.Command{Op: locks.OpForce, Key: []byte(key), Token: token})
	if ok {
		u.audit(r, Action{Kind: "force-release", Key: key, Token: token, Reason: reason, Result: reply.Code})
	}
	switch {
	case !ok:
		refuse(http.StatusServiceUnavailable, "The node did not answer in time: whether it was done is not known. Look at the key again.")
	case reply.Code == locks.ForceDone:
		http.Redirect(w, r, keyURL(key)+"&done=forced", http.StatusSeeOther)
	case reply.Code == locks.HolderChanged:
		refuse(http.StatusConflict, "The holder changed since you opened this page. Nothing was changed.")
	default:
		refuse(http.StatusConflict, "It could not be done ("+reply.Code.String()+"). Nothing was changed.")
	}
}

func (u *UI) audit(r *http.Request, a Action) {
	if u.cfg.Audit != nil {
		u.cfg.Audit(r, a)
	}
}
