//go:build linux

package cluster

import (
	"encoding/binary"
	"io"
	"testing"

	"holdfast/internal/replica"
)

// serves says whether a node still answers a lock request, whatever the answer.
func serves(t *testing.T, n *node) {
	t.Helper()
	r, err := n.set.http.Post(n.url()+"/v1/acquire?key=k&try=1&lease=0.001", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, _ := io.ReadAll(r.Body); r.StatusCode >= 500 {
		t.Errorf("answered %d %s", r.StatusCode, b)
	}
}

// A peer that has the secret and claims what cannot be: tokens at the end of
// time are not believed, and a later reign than any token that it tells of does
// not make the active begin reign after reign.
func TestClaims(t *testing.T) {
	grant := []byte{2, 1, 4, 'e', 'v', 'i', 'l'} // a grant without a ticket, as nodes encode it
	grant = binary.AppendUvarint(grant, 1<<64-1)
	grant = append(grant, 60, 1, 0, 0, 0, 1)
	for name, say := range map[string]func(epoch uint64) (says replica.Heartbeat, more []replica.Message){
		"a token at the end": func(uint64) (replica.Heartbeat, []replica.Message) {
			return replica.Heartbeat{Role: replica.Joining, Active: replica.Nobody, Highest: 1<<53 - 1}, nil
		},
		"an epoch at the end": func(uint64) (replica.Heartbeat, []replica.Message) {
			return replica.Heartbeat{Role: replica.Joining, Active: replica.Nobody, Position: replica.Position{Epoch: 1<<53 - 1, Seq: 1}}, nil
		},
		"a later epoch than its tokens": func(epoch uint64) (replica.Heartbeat, []replica.Message) {
			later := quietJoiner
			later.Position = replica.Position{Epoch: replica.Epoch(epoch + 1<<40), Seq: 1}
			return later, nil
		},
		"a token without bound in an offer": func(uint64) (replica.Heartbeat, []replica.Message) {
			return quietJoiner, []replica.Message{&replica.Offer{ID: 1}, &replica.OfferChunk{ID: 1, Last: true, Events: replica.AppendEvent(nil, grant)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(t, 3)
			one := s.nodes[0]
			one.start()
			s.nodes[1].start()
			one.awaitRole("active")
			x := newImpostor(t, s, one, quietJoiner)
			says, more := say(one.state().Epoch)
			x.mu.Lock()
			x.says = says
			x.mu.Unlock()
			x.say(more...)
			x.say()
			serves(t, one)
			if is := one.state(); is.Role != "active" || is.Epoch >= replica.MaxHeard {
				t.Errorf("n1 is %+v", is)
			}
		})
	}
}
