package web

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/internal/node"
)

// A cluster as a standby sees it: the active, itself, one that was never heard, and one that it refuses.
func TestClusterView(t *testing.T) {
	s := newServer(t, Config{}, nil)
	s.active = func() node.ActiveNode {
		return node.ActiveNode{Name: "n0", Native: "n0:7620", HTTP: []string{"http://n0:7621"}}
	}
	s.members = func() []node.Member {
		return []node.Member{
			{Name: "n0", Alive: true, Role: node.Active, Native: "n0:7620", HTTP: []string{"http://n0:7621"}, Epoch: 8, Seq: 7, Synced: true,
				Since: startOfTokens.In(time.FixedZone("", 3600)), Reason: "the only one alive"},
			{Rank: 1, Name: "n1", Self: true, Alive: true, Role: node.Standby, Epoch: 8, Seq: 5, Behind: 2, Lag: 1500 * time.Millisecond},
			{Rank: 2, Name: "n2"},
			{Rank: 3, Name: "n3", Role: node.Stopping, Refused: "the clocks are two hours apart"},
		}
	}
	ask := func(accept string) string {
		r := httptest.NewRequest("GET", "http://localhost/v1/cluster", nil)
		r.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		contract.Handler(t, s.Handler()).ServeHTTP(rec, r)
		return rec.Body.String()
	}
	const want = `{"active":{"name":"n0","addresses":{"native":"n0:7620","http":["http://n0:7621"]}},"nodes":[` +
		`{"rank":0,"name":"n0","self":false,"alive":true,"role":"active","addresses":{"native":"n0:7620","http":["http://n0:7621"]},` +
		`"epoch":8,"seq":7,"synced":true,"behind":0,"lag":0,"since":"2026-01-01T00:00:00Z","reason":"the only one alive","refused":null},` +
		`{"rank":1,"name":"n1","self":true,"alive":true,"role":"standby","addresses":{"native":"","http":[]},` +
		`"epoch":8,"seq":5,"synced":false,"behind":2,"lag":1.5,"since":null,"reason":"","refused":null},` +
		`{"rank":2,"name":"n2","self":false,"alive":false,"role":null,"addresses":{"native":"","http":[]},` +
		`"epoch":0,"seq":0,"synced":false,"behind":0,"lag":0,"since":null,"reason":"","refused":null},` +
		`{"rank":3,"name":"n3","self":false,"alive":false,"role":null,"addresses":{"native":"","http":[]},` +
		`"epoch":0,"seq":0,"synced":false,"behind":0,"lag":0,"since":null,"reason":"","refused":"the clocks are two hours apart"}]}` + "\n"
	if got := ask("application/json"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := ask("text/plain"), "n0 active, n1 standby, n2 not heard, n3 not heard\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.active = func() node.ActiveNode { return node.ActiveNode{} }
	var body struct{ Active *struct{} }
	if err := json.Unmarshal([]byte(ask("application/json")), &body); err != nil || body.Active != nil {
		t.Errorf("without an active: %v, %v", body, err)
	}
}
