package ui

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"
)

// write sends a page. It is made in memory first: a page is whole or not there.
func write(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	var b bytes.Buffer
	if err := page.Render(r.Context(), &b); err != nil {
		panic(err) // a Buffer takes everything: a template is wrong, or the client has gone
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error is the client's
}

// notice is a page that only says something.
type notice struct {
	frame
	Text string
	Of   []run  // a text that a client chose
	Link string // where to go from here
	Go   string // what it is called
}

func (u *UI) say(w http.ResponseWriter, r *http.Request, status int, n notice) {
	n.Live = false
	write(w, r, status, noticeView(n))
}

func (u *UI) missing(w http.ResponseWriter, r *http.Request) {
	u.say(w, r, http.StatusNotFound, notice{
		frame: u.frame(r, "", "Not found"), Text: "There is no page at this address.", Link: "/", Go: "Overview",
	})
}

func (u *UI) help(w http.ResponseWriter, r *http.Request) {
	f := u.frame(r, "help", "Help")
	f.Live = false
	write(w, r, http.StatusOK, helpView(f))
}

// Unauthenticated answers a browser that has not shown who it is.
func (u *UI) Unauthenticated(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	write(w, r, http.StatusUnauthorized, deniedView(themeOf(r)))
}

// maxFormBytes is room for the longest key and reason, escaped, twice over.
const maxFormBytes = 16 << 10

// form reads a form. false = it could not be read, and that is answered.
func (u *UI) form(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		u.say(w, r, http.StatusBadRequest, notice{
			frame: u.frame(r, "", "Not understood"), Text: "The form could not be read: " + err.Error() + ".", Link: "/", Go: "Overview",
		})
		return nil, false
	}
	return r.PostForm, true
}
