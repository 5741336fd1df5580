package ui

import (
	"holdfast/internal/node"
)

// kind is a group of events that the page can be narrowed to.
type kind struct {
	name, title string
	types       []node.NoticeType // nil = all but grants and releases
}

var kinds = []kind{
	{name: "", title: "All"},
	{"role", "Roles", []node.NoticeType{node.NoticeRole}},
	{"handoff", "Hand-offs", []node.NoticeType{node.NoticeHandoff}},
	{"peer", "Peers", []node.NoticeType{node.NoticePeer, node.NoticeTwoActives, node.NoticeCluster}},
	{"merge", "Merges", []node.NoticeType{node.NoticeMerge, node.NoticeSuperseded}},
	{"expired", "Ran out", []node.NoticeType{node.NoticeExpired}},
	{"timeout", "Timeouts", []node.NoticeType{node.NoticeTimeout}},
	{"operator", "Operators", []node.NoticeType{node.NoticeOperator, node.NoticeForced, node.NoticeRemoved}},
	{"auth", "Auth failures", []node.NoticeType{node.NoticeAuth}},
	{"limit", "Limits", []node.NoticeType{node.NoticeLimit}},
	{"grant", "Grants and releases", traffic},
}

var traffic = []node.NoticeType{node.NoticeGrant, node.NoticeRelease}

// kindNamed returns all events for a name that there is not.
func kindNamed(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return kinds[0]
}

// fromFeed reads a node's feed.
func fromFeed(feed *node.Feed) func(EventFilter, int) []Event {
	return func(f EventFilter, most int) (all []Event) {
		k := kindNamed(f.Kind)
		filter := node.Filter{Types: k.types, Prefix: f.Prefix, Key: f.Key, Traffic: k.name == "grant" || f.Key != ""}
		for _, one := range feed.Recent(filter, most) {
			all = append(all, eventOf(&one))
		}
		return all
	}
}

// meaning is how much weight notices of a type have, and what they say where
// the notice itself has no text.
type meaning struct {
	weight Weight
	text   string
}

var meanings = map[node.NoticeType]meaning{
	node.NoticeRole:       {Warning, ""},
	node.NoticeHandoff:    {News, ""},
	node.NoticePeer:       {Warning, ""},
	node.NoticeMerge:      {Warning, ""},
	node.NoticeTwoActives: {Alarm, ""},
	node.NoticeCluster:    {Warning, ""},
	node.NoticeOperator:   {Warning, ""},
	node.NoticeExpired:    {Warning, "the lease ran out"},
	node.NoticeForced:     {Warning, "taken from its holder by an operator"},
	node.NoticeSuperseded: {Alarm, "gave way to another grant when two states were merged"},
	node.NoticeRemoved:    {News, "a waiter was taken out by an operator"},
	node.NoticeTimeout:    {News, "a wait ended without a grant"},
	node.NoticeAuth:       {Warning, "an auth token was refused"},
	node.NoticeLimit:      {Warning, "a limit is reached"},
	node.NoticeGrant:      {News, "granted"},
	node.NoticeRelease:    {News, "released"},
}

// eventOf puts a notice into words.
func eventOf(one *node.Notice) Event {
	m := meanings[one.Type]
	e := Event{
		Seq: one.Seq, At: one.At, Kind: one.Type.String(), Weight: m.weight, Key: one.Key, Owner: one.Owner, Token: one.Token,
		Text: m.text, Who: one.Who, From: one.From, Why: one.Why, Result: one.Result, Gap: one.Skipped,
	}
	switch {
	case one.Type == node.NoticeRole:
		e.Text = "became " + one.Role.String() + ": " + one.Text
	case one.Type == node.NoticeOperator:
		e.Text = one.Action
	case m.text != "" && one.Text != "":
		e.Text += ": " + one.Text
	case one.Text != "":
		e.Text = one.Text
	}
	if one.Node != "" {
		e.Text = one.Node + ": " + e.Text
	}
	return e
}
