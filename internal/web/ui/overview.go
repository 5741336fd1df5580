package ui

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// overviewPage answers "is it healthy" in one look.
type overviewPage struct {
	frame
	Tiles     []tile
	Nodes     []nodeRow
	Charts    []chart
	Standouts []standout
}

// tile is one number.
type tile struct {
	Label string
	Value string
	Note  string
	URL   string
}

// nodeRow is one node of the cluster.
type nodeRow struct {
	Rank      string
	Name      string
	Self      bool
	Role      badge
	Since     string
	SinceAt   moment
	Version   string
	Addresses []string
	Epoch     string
	Seq       string
	Lag       string
	Synced    bool
	Reason    string
	Refused   string
	URL       string // its own dashboard
}

// standout is a short list of what may need attention.
type standout struct {
	Title string
	Empty string // what to say where there is nothing
	Rows  []standoutRow
	URL   string // the whole list
}

type standoutRow struct {
	Key    []run
	URL    string
	Owner  []run
	Figure string
}

func (u *UI) overview(w http.ResponseWriter, r *http.Request) {
	n := u.cfg.Node
	st, rows := n.Status(), n.Rows()
	var samples []node.Sample
	if u.cfg.History != nil {
		samples = u.cfg.History()
	}
	top := u.standouts(rows)
	p := overviewPage{frame: u.frame(r, "overview", "Overview"), Charts: charts(samples)}
	p.Tiles = tilesOf(&st, n.Clients(), samples, rows.At, top)
	p.Tiles = append(p.Tiles, tile{Label: "Replication", Value: orElse(u.cfg.Replication, "single"), Note: replicationNote(u.cfg.Replication)})
	p.Nodes = nodeRows(u.cfg.Members(), p.now, n.Frozen())
	p.Standouts = append(standoutsOf(top, rows.At), u.expired(p.now))
	write(w, r, http.StatusOK, overviewView(p))
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func replicationNote(mode string) string {
	switch mode {
	case "ack":
		return "answers wait for a standby"
	case "async":
		return "answers do not wait"
	}
	return "a node of its own"
}

// tilesOf makes the row of numbers.
func tilesOf(st *node.Status, clients []node.Client, samples []node.Sample, at locks.Time, top *standouts) []tile {
	var last node.Sample
	var expired uint64
	if len(samples) > 0 {
		last = samples[len(samples)-1]
	}
	for i := range samples {
		expired += uint64(samples[i].Expiries)
	}
	longest, url := "–", "/ui/locks?sort=oldest_wait"
	if len(top.waited) > 0 {
		longest, url = span(at.Sub(top.waited[0].OldestWait)), keyURL(top.waited[0].Key)
	}
	return []tile{
		{"Held", number(st.Stats.Held), "on " + counted(st.Stats.Keys, "key"), "/ui/locks?state=held"},
		{"Waiting", number(st.Stats.Waiters), "", "/ui/locks?min_waiters=1&sort=waiters"},
		{"Longest wait", longest, "now", url},
		{"Grants", number(last.Grants) + "/s", "", ""},
		{"Timeouts", number(last.Timeouts) + "/s", "", "/ui/events?kind=timeout"},
		{"Leases run out", number(expired), "in 10 min", "/ui/events?kind=expired"},
		{"Connections", number(st.Sessions), transportsOf(clients), "/ui/clients"},
	}
}

// transportsOf counts clients by how they came.
func transportsOf(clients []node.Client) string {
	counts := map[string]int{}
	for i := range clients {
		counts[orElse(clients[i].Origin.Transport, "other")]++
	}
	var words []string
	for name, n := range counts {
		words = append(words, number(n)+" "+name)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func nodeRows(members []node.Member, now time.Time, frozen bool) []nodeRow {
	var all []nodeRow
	for i := range members {
		all = append(all, nodeRowOf(&members[i], now, frozen && members[i].Self))
	}
	return all
}

func nodeRowOf(m *node.Member, now time.Time, frozen bool) nodeRow {
	row := nodeRow{
		Rank: number(m.Rank + 1), Name: m.Name, Self: m.Self, Role: roleBadge(m.Role, frozen), Version: orElse(m.Version, "–"),
		Since: since(now, m.Since), SinceAt: momentOf(m.Since), Epoch: "–", Seq: "–", Lag: "–",
		Synced: m.Synced, Reason: orElse(m.Reason, "–"), Refused: m.Refused,
	}
	if !m.Alive {
		row.Role = badge{"not heard", "gone"}
	}
	if m.Native != "" {
		row.Addresses = append(row.Addresses, m.Native)
	}
	row.Addresses = append(row.Addresses, m.HTTP...)
	if !m.Self && len(m.HTTP) > 0 {
		row.URL = m.HTTP[0] + "/"
	}
	if m.Epoch != 0 {
		row.Epoch, row.Seq = tokenText(m.Epoch), number(m.Seq)
	}
	switch {
	case m.Alive && m.Behind > 0:
		row.Lag = number(m.Behind) + " events, " + span(m.Lag)
	case m.Alive && m.Synced:
		row.Lag = "in step"
	case m.Alive:
		row.Lag = "not in step"
	}
	return row
}
