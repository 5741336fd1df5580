package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/node"
)

// clientsPage lists who is connected.
type clientsPage struct {
	frame
	Columns []header
	Rows    []clientRow
	Filter  string
	Sort    string
	Order   string
	Total   string
	Shown   string // how many of them; "" = all
}

type clientRow struct {
	ID        string
	Owner     []run
	URL       string // the keys that this owner holds
	Identity  string
	Remote    string
	Transport string
	Since     string
	SinceAt   moment
}

// clientsShown bounds the page: the filter finds the others.
const clientsShown = 500

var clientColumns = []struct {
	name, title string
	desc        bool
	compare     func(a, b *node.Client) int
}{
	{"owner", "Owner", false, func(a, b *node.Client) int { return strings.Compare(a.Origin.Owner, b.Origin.Owner) }},
	{"identity", "Identity", false, func(a, b *node.Client) int { return strings.Compare(a.Origin.Identity, b.Origin.Identity) }},
	{"remote", "Address", false, func(a, b *node.Client) int { return strings.Compare(a.Origin.Remote, b.Origin.Remote) }},
	{"transport", "Transport", false, func(a, b *node.Client) int { return strings.Compare(a.Origin.Transport, b.Origin.Transport) }},
	{"since", "Connected for", true, func(a, b *node.Client) int { return b.Since.Compare(a.Since) }},
}

func (u *UI) clients(w http.ResponseWriter, r *http.Request) {
	p := clientsPageOf(r.URL.Query(), u.cfg.Node.Clients(), u.cfg.Node.WallTime(u.cfg.Node.Now()))
	p.frame = u.frame(r, "clients", "Connections")
	write(w, r, http.StatusOK, clientsView(p))
}

func clientsPageOf(v url.Values, clients []node.Client, now time.Time) clientsPage {
	p := clientsPage{Filter: v.Get("q"), Sort: "since", Order: "desc"}
	by := clientColumns[len(clientColumns)-1]
	for _, c := range clientColumns {
		if c.name == v.Get("sort") {
			by, p.Sort = c, c.name
		}
	}
	desc := by.desc
	if order := v.Get("order"); order == "asc" || order == "desc" {
		desc = order == "desc"
	}
	p.Order = orderName(desc)
	if p.Filter != "" {
		clients = slices.DeleteFunc(clients, func(c node.Client) bool {
			return !strings.Contains(c.Origin.Owner, p.Filter) && !strings.Contains(c.Origin.Remote, p.Filter)
		})
	}
	slices.SortFunc(clients, func(a, b node.Client) int {
		c := by.compare(&a, &b)
		if desc {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.Session, b.Session))
	})
	p.Total = number(len(clients))
	if len(clients) > clientsShown {
		clients, p.Shown = clients[:clientsShown], number(clientsShown)
	}
	for i := range clients {
		p.Rows = append(p.Rows, clientRowOf(&clients[i], now))
	}
	p.Columns = clientHeaders(by.name, desc, p.Filter)
	return p
}

func orderName(desc bool) string {
	if desc {
		return "desc"
	}
	return "asc"
}

func clientHeaders(by string, desc bool, filter string) []header {
	var all []header
	for _, c := range clientColumns {
		h := header{Title: c.title, Sort: "none", Right: c.name == "since"}
		next := c.desc
		if c.name == by {
			next = !desc
			if h.Sort = "ascending"; desc {
				h.Sort = "descending"
			}
		}
		v := url.Values{"sort": {c.name}, "order": {orderName(next)}}
		if filter != "" {
			v.Set("q", filter)
		}
		h.URL = "/ui/clients?" + v.Encode()
		all = append(all, h)
	}
	return all
}

func clientRowOf(c *node.Client, now time.Time) clientRow {
	o := &c.Origin
	row := clientRow{
		ID: strconv.FormatUint(uint64(c.Session), 10), Owner: ownerRuns(o.Owner), Identity: orElse(o.Identity, "–"), Remote: orElse(o.Remote, "–"),
		Transport: orElse(o.Transport, "–"), Since: since(now, c.Since), SinceAt: momentOf(c.Since),
	}
	if o.Owner != "" {
		row.URL = "/ui/locks?" + url.Values{"owner": {o.Owner}}.Encode()
	}
	return row
}
