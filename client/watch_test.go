package client

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The list of alarms against a plain one.
func TestWatchOrder(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	var w watch
	w.init(newClock())
	alarms := make([]alarm, 200)
	set := map[*alarm]instant{}
	for step := range 20000 {
		a := &alarms[rnd.IntN(len(alarms))]
		switch rnd.IntN(3) {
		case 0:
			at := instant(1 + rnd.IntN(1000))
			w.set(a, at)
			if old, ok := set[a]; !ok || at < old {
				set[a] = at
			}
		case 1:
			w.mu.Lock()
			w.removeLocked(a)
			w.mu.Unlock()
			delete(set, a)
		case 2:
			now := instant(rnd.IntN(1000))
			got := w.due(now)
			want := instant(0)
			for _, at := range set {
				if at <= now && (want == 0 || at < want) {
					want = at
				}
			}
			if got == nil && want != 0 || got != nil && set[got] != want {
				t.Fatalf("seed %d, step %d: due at %d: %v, want %d", seed, step, now, got, want)
			}
			if got != nil {
				delete(set, got)
			}
		}
		if len(w.heap) != len(set) {
			t.Fatalf("seed %d, step %d: %d alarms, want %d", seed, step, len(w.heap), len(set))
		}
		for i, a := range w.heap {
			if a.pos != i+1 || a.at != set[a] {
				t.Fatalf("seed %d, step %d: alarm %d is at %d for %d, want %d", seed, step, i, a.pos, a.at, set[a])
			}
		}
	}
}

func TestTicketsAreFresh(t *testing.T) {
	var s ticketSource
	seen := map[[16]byte]bool{}
	for range 1000 {
		ticket := s.next()
		if ticket.IsZero() || seen[ticket] {
			t.Fatalf("ticket %x", ticket)
		}
		seen[ticket] = true
	}
	if slices.Equal(s.buf[:16], make([]byte, 16)) != (s.left < len(s.buf)) {
		t.Error("a ticket that was handed out is still there")
	}
}

func TestCallTable(t *testing.T) {
	var tab callTable
	calls := make([]call, 5)
	for i := range calls {
		if id, ok := tab.put(&calls[i]); !ok || id != uint32(i+1) {
			t.Fatalf("id %d", id)
		}
	}
	for _, id := range []uint32{0, 6, 1 << 31} {
		if tab.at(id) != nil {
			t.Errorf("there is a call with id %d", id)
		}
	}
	tab.remove(2)
	tab.remove(4)
	if tab.at(2) != nil || tab.at(3) != &calls[2] || tab.pending() != 3 {
		t.Error("the wrong call was removed")
	}
	if id, _ := tab.put(&calls[3]); id != 4 || tab.at(4) != &calls[3] {
		t.Errorf("id %d, want the place that became free last", id)
	}
}
