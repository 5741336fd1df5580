package ui

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// Mode is how much of the dashboard there is.
type Mode uint8

const (
	Off      Mode = iota // none of it
	ReadOnly             // it shows, and changes nothing
	Full
)

// Config is what the dashboard shows, and by whom it acts.
type Config struct {
	// Mode is how much of it there is.
	Mode Mode

	// Node is the node that it shows. Required.
	Node *node.Node

	// Active and Members are how it sees its cluster. nil = as Node does.
	Active  func() node.ActiveNode
	Members func() []node.Member

	// History returns samples for the charts, oldest first. nil = none.
	History func() []node.Sample

	// Events returns what has happened last, newest first: at most max events that
	// fit the filter. nil = those of Node's feed.
	Events func(f EventFilter, max int) []Event

	// Settings are the effective configuration, secrets masked.
	Settings []Setting

	// Limits bound the table; MaxConnections the connections.
	Limits         locks.Config
	MaxConnections int

	// Replication says in a word how the cluster replicates; "" = a node of its own.
	Replication string

	// Viewer tells who asks.
	Viewer func(r *http.Request) Viewer

	// ActiveURL returns where a browser reaches the active's HTTP port, "" if nobody knows.
	ActiveURL func(r *http.Request) string

	// Ask runs one command on behalf of r. ok is false where no answer came.
	Ask func(r *http.Request, c locks.Command) (reply locks.Reply, ok bool)

	// Audit is told of each thing that an operator did here. nil = nobody.
	Audit func(r *http.Request, a Action)
}

// Viewer is who looks at a page.
type Viewer struct {
	Name    string // "" while auth is off
	Operate bool   // may see tokens and tickets, and act
}

// Setting is one line of the effective configuration.
type Setting struct{ Name, Value, Source string }

// Action is what an operator did.
type Action struct {
	Kind   string // "force-release" or "remove-waiter"
	Key    string
	Token  locks.Token
	Ticket locks.Ticket
	Reason string // the operator's
	Result locks.Code
}

// Event is one thing that happened.
type Event struct {
	Seq    uint64
	At     time.Time
	Kind   string // role, peer, expired, forced, …
	Weight Weight
	Key    string // "" where it concerns none
	Owner  string
	Token  locks.Token
	Text   string // in words
	Who    string // of operators: the identity
	From   string // of operators: the address
	Why    string
	Result string
	Gap    uint64 // this many events before this one are lost
}

// Weight says how much an event is to catch the eye.
type Weight uint8

const (
	News Weight = iota
	Warning
	Alarm
)

// EventFilter chooses events.
type EventFilter struct {
	Kind   string // "" = every kind
	Key    string // exactly this key; "" = any
	Prefix string // of the key; "" = any
}

// UI is the dashboard of one node. Its handlers may run at once.
type UI struct {
	cfg Config

	mu   sync.Mutex // guards what follows
	seen *node.Rows // the snapshot that top was made of
	top  *standouts
}

// New makes the dashboard.
func New(cfg Config) *UI {
	if cfg.Active == nil {
		cfg.Active = cfg.Node.Active
	}
	if cfg.Members == nil {
		cfg.Members = cfg.Node.Members
	}
	if cfg.Events == nil {
		cfg.Events = fromFeed(cfg.Node.Feed())
	}
	return &UI{cfg: cfg}
}

// Routes adds the pages to r, all of which show only to those whom the caller
// has let through.
func (u *UI) Routes(r chi.Router) {
	get := func(path string, h http.HandlerFunc) { r.Get(path, h); r.Head(path, h) }
	get("/", u.overview)
	get("/ui", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) })
	get("/ui/locks", u.keys)
	get("/ui/lock", u.key)
	get("/ui/events", u.events)
	get("/ui/clients", u.clients)
	get("/ui/node", u.node)
	get("/ui/help", u.help)
	get("/ui/*", u.missing)
	r.Post("/ui/theme", u.theme)
	if u.cfg.Mode != Full {
		return
	}
	get("/ui/force", u.forceForm)
	get("/ui/remove", u.removeForm)
	r.Post("/ui/force", u.force)
	r.Post("/ui/remove", u.remove)
}
