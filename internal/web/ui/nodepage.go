package ui

import (
	"net/http"
	"runtime"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// nodePage is about this node itself.
type nodePage struct {
	frame
	Facts    []fact
	Limits   []limitRow
	Settings []Setting
	Links    []choice
}

type fact struct{ Name, Value string }

// limitRow is a bound and how much of it is used.
type limitRow struct {
	Name    string
	Setting string
	Used    string
	Most    string
	Share   int // hundredths
	High    bool
}

func (u *UI) node(w http.ResponseWriter, r *http.Request) {
	st := u.cfg.Node.Status()
	p := nodePage{frame: u.frame(r, "node", "This node"), Settings: u.cfg.Settings, Limits: limitRows(&st, &u.cfg.Limits, u.cfg.MaxConnections)}
	p.Facts = factsOf(&st, &p.frame)
	p.Links = []choice{
		{Text: "Metrics", URL: "/metrics"}, {Text: "API description (OpenAPI)", URL: "/v1/openapi.json"},
		{Text: "Health", URL: "/healthz?verbose=1"}, {Text: "Node as JSON", URL: "/v1/node"}, {Text: "Cluster as JSON", URL: "/v1/cluster"},
	}
	write(w, r, http.StatusOK, nodeView(p))
}

func factsOf(st *node.Status, f *frame) []fact {
	return []fact{
		{"Name", st.Name},
		{"Version", orElse(st.Version, "–")},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"Started", momentOf(st.Started).Full + ", " + since(f.now, st.Started) + " ago"},
		{"Role", st.Role.String() + " for " + since(f.now, st.Since) + ": " + st.Reason},
		{"Epoch", tokenText(st.Epoch)},
		{"Events in this epoch", number(st.Seq)},
		{"Default lease", span(st.DefaultLease)},
		{"Longest lease", span(st.MaxLease)},
		{"Reattach grace", span(st.ReattachGrace)},
		{"Certificate", "none: TLS is off"},
	}
}

// highShare is how full a limit is when it deserves a look.
const highShare = 80

func limitRows(st *node.Status, c *locks.Config, connections int) []limitRow {
	row := func(name, setting string, used, most int64, text func(int64) string) limitRow {
		r := limitRow{Name: name, Setting: setting, Used: text(used), Most: text(most)}
		if most > 0 {
			r.Share = int(min(used*100/most, 100))
		}
		r.High = r.Share >= highShare
		return r
	}
	count := func(n int64) string { return number(n) }
	return []limitRow{
		row("Keys", "HOLDFAST_MAX_KEYS", int64(st.Stats.Keys), int64(c.MaxKeys), count),
		row("Bytes of keys", "HOLDFAST_MAX_KEY_BYTES", st.Stats.KeyBytes, c.MaxKeyBytes, size),
		row("Waiters", "HOLDFAST_MAX_WAITERS", int64(st.Stats.Waiters), int64(c.MaxWaiters), count),
		row("Connections", "HOLDFAST_MAX_CONNECTIONS", int64(st.Sessions), int64(connections), count),
	}
}
