package ui

import (
	"fmt"
	"net/http"
	"time"

	"holdfast/internal/node"
)

// frame is what every page has around it.
type frame struct {
	Title   string
	Page    string // which entry of the menu it is
	Node    string
	Role    badge
	Epoch   string
	Theme   string // "system", "light" or "dark"
	Back    string // where the theme's form returns to
	Now     moment
	Version string
	Who     string
	Limited bool   // this page changes nothing, whoever looks
	Live    bool   // the page is kept up to date
	Watch   string // the prefix of keys whose grants and releases it shows; "" = none
	Replica *replicaNote
	Flash   *flash

	now time.Time
}

// badge is a role: its shape is a class of the stylesheet and a drawing.
type badge struct {
	Name  string // what people read
	Shape string // active, standby, joining, frozen, stopping, gone
}

// replicaNote says that a page shows another node's state.
type replicaNote struct {
	Behind string
	Active string // the name of the active; "" = none is known
	URL    string // the same page there; "" = no address is known
}

// flash is what a form's answer says on top of the page.
type flash struct {
	Kind string // "good" or "bad"
	Text string
	Of   []run // what it is about, chosen by a client
}

func roleBadge(r node.Role, frozen bool) badge {
	switch {
	case frozen && r != node.Stopping:
		return badge{"frozen", "frozen"}
	case r == 0:
		return badge{"never heard", "gone"}
	}
	return badge{r.String(), r.String()}
}

func (u *UI) frame(r *http.Request, page, title string) frame {
	st := u.cfg.Node.Status()
	now := u.cfg.Node.WallTime(u.cfg.Node.Now())
	f := frame{
		Title: title, Page: page, Node: st.Name, Role: roleBadge(st.Role, u.cfg.Node.Frozen()),
		Epoch: tokenText(st.Epoch), Theme: themeOf(r), Back: r.URL.RequestURI(), Now: momentOf(now), Version: st.Version,
		Who: u.cfg.Viewer(r).Name, Limited: u.cfg.Mode != Full, Live: true, now: now,
	}
	if r.Method == http.MethodPost {
		f.Back = "/"
	}
	if !u.cfg.Active().Here {
		f.Replica = u.replicaNote(r)
	}
	return f
}

// replicaNote says how old this node's state may be, and where the active is.
func (u *UI) replicaNote(r *http.Request) *replicaNote {
	note := &replicaNote{Behind: "not in step with it", Active: u.cfg.Active().Name}
	if note.Active != "" {
		if url := u.cfg.ActiveURL(r); url != "" {
			note.URL = url + r.URL.RequestURI()
			if r.Method == http.MethodPost {
				note.URL = url + "/"
			}
		}
	}
	note.Behind = behind(u.cfg.Members(), note.Active)
	return note
}

// behind says how far this node's state is from the active's.
func behind(members []node.Member, active string) string {
	var self, other *node.Member
	for i := range members {
		switch m := &members[i]; {
		case m.Self:
			self = m
		case m.Name == active:
			other = m
		}
	}
	switch {
	case self == nil || other == nil || !self.Synced || self.Epoch != other.Epoch:
		return "not in step"
	case other.Seq <= self.Seq:
		return "in step"
	case other.Seq == self.Seq+1:
		return "1 event behind"
	}
	return fmt.Sprintf("%s events behind", number(other.Seq-self.Seq))
}

const themeCookie = "holdfast_theme"

func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return "system"
}

// theme keeps what the theme's buttons say, for browsers without JavaScript.
func (u *UI) theme(w http.ResponseWriter, r *http.Request) {
	in, ok := u.form(w, r)
	if !ok {
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: themeCookie, Value: in.Get("theme"), Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteStrictMode,
	})
	back := in.Get("back")
	if len(back) == 0 || back[0] != '/' || len(back) > 1 && (back[1] == '/' || back[1] == '\\') {
		back = "/" // nowhere but here
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}
