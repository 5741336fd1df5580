package web

import (
	"net/http"
	"runtime"
	"time"

	"holdfast/internal/locks"
)

// nothing is the schema of an endpoint without input.
var nothing = schema[struct{}]{}

type nodeBody struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Role         string            `json:"role"`
	Since        time.Time         `json:"since"`
	Reason       string            `json:"reason"`
	Started      time.Time         `json:"started"`
	Epoch        locks.Token       `json:"epoch"`
	Seq          uint64            `json:"seq"`
	Addresses    addresses         `json:"addresses"`
	Active       *activeNode       `json:"active"` // null where none is known
	Held         int               `json:"held"`
	Waiters      int               `json:"waiters"`
	Keys         int               `json:"keys"`
	KeyBytes     int64             `json:"key_bytes"`
	Sessions     int               `json:"sessions"`
	DefaultLease seconds           `json:"default_lease"`
	MaxLease     seconds           `json:"max_lease"`
	RepeatWithin seconds           `json:"repeat_within"`
	Replies      map[string]uint64 `json:"replies"` // since the start, by outcome
}

type addresses struct {
	Native string   `json:"native"`
	HTTP   []string `json:"http"`
}

type activeNode struct {
	Name      string    `json:"name"`
	Addresses addresses `json:"addresses"`
}

func (s *Server) nodeView(*http.Request, struct{}) *answer {
	st := s.node.Status()
	body := nodeBody{
		Name: st.Name, Version: st.Version,
		Role: st.Role.String(), Since: st.Since.UTC(), Reason: st.Reason, Started: st.Started.UTC(),
		Epoch: st.Epoch, Seq: st.Seq, Addresses: addressesOf(st.Native, st.HTTP),
		Held: st.Stats.Held, Waiters: st.Stats.Waiters, Keys: st.Stats.Keys, KeyBytes: st.Stats.KeyBytes,
		Sessions: st.Sessions, DefaultLease: seconds(st.DefaultLease), MaxLease: seconds(st.MaxLease),
		RepeatWithin: seconds(st.ReattachGrace), Replies: st.Counts,
		Active: activeOf(s.active()),
	}
	return ok(body, body.Role)
}

func addressesOf(native string, http []string) addresses {
	if http == nil {
		http = []string{} // null is no list
	}
	return addresses{native, http}
}

type versionBody struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	API     string `json:"api"`
	Go      string `json:"go"`
}

func (s *Server) version(*http.Request, struct{}) *answer {
	v := s.node.Status().Version
	return ok(versionBody{"holdfast", v, "v1", runtime.Version()}, v)
}
