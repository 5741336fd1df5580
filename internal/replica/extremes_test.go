package replica

import (
	"math"
	"strings"
	"testing"
	"time"
)

// A hello that makes no sense is refused, one whose texts are as long as they may be is not.
func TestHelloAtTheBounds(t *testing.T) {
	long := func(change func(*Hello)) *Hello {
		h := hello(1, 2)
		change(h)
		return h
	}
	eight := make([]string, MaxNodes)
	for i := range eight {
		eight[i] = strings.Repeat(string(rune('a'+i)), maxNameBytes)
	}
	for _, tt := range []struct {
		name string
		h    *Hello
		up   bool
	}{
		{"all fields as long as they may be", long(func(h *Hello) {
			h.Names = append(h.Names, eight[3:]...)
			h.Software, h.Native = strings.Repeat("x", maxTextBytes), strings.Repeat("y", maxAddressBytes)
			h.Limits = make([]byte, maxLimitBytes)
			for range maxAddresses {
				h.HTTP = append(h.HTTP, strings.Repeat("z", maxAddressBytes))
			}
		}), true},
		{"eight other names", long(func(h *Hello) { h.Name, h.Names = eight[1], eight }), false},
		{"no names", long(func(h *Hello) { h.Names = nil }), false},
		{"a rank past its list", long(func(h *Hello) { h.Rank = 7 }), false},
		{"no rank", long(func(h *Hello) { h.Rank = Nobody }), false},
		{"the same name twice", long(func(h *Hello) { h.Names = []string{"n1", "n1", "n2"} }), false},
		{"the first clock", long(func(h *Hello) { h.Wall = math.MinInt64 }), false},
		{"the last clock", long(func(h *Hello) { h.Wall = math.MaxInt64 }), false},
		{"another major", long(func(h *Hello) { h.Major = math.MaxUint16 }), false},
		{"this process", long(func(h *Hello) { h.Incarnation = 100 }), false},
		{"started long ago", long(func(h *Hello) { h.Uptime = math.MaxInt64 }), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPuppet(t, 0, nil)
			id := p.greet(tt.h)
			if up := p.m.peers[1].link == id; up != tt.up {
				t.Errorf("taken for the peer: %v, want %v", up, tt.up)
			}
			if tt.up != (p.m.findLink(id) != nil) {
				t.Errorf("the link stands: %v", !tt.up)
			}
			p.run(time.Second)
		})
	}
}

// Ages and ranks at the end of what a heartbeat may hold change nothing: nobody is sent to a node that is none.
func TestHeartbeatAtTheBounds(t *testing.T) {
	for name, says := range map[string]Heartbeat{
		"an age without end": {Role: Standby, Active: 2, ActiveAge: math.MaxInt64, Hears: math.MaxUint8},
		"take-backs":         {Role: Standby, Active: Nobody, TakeBacksOff: true, TakeBacks: []time.Duration{math.MaxInt64, 0, 1, 2, 3, 4, 5, 6}},
		"every flag": {Role: Standby, Active: Nobody, Stopping: true, Complete: true, Synced: true, Yields: true, Frozen: true,
			Barred: true, Waking: true, Ask: true, Hears: math.MaxUint8},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t, 0, nil)
			p.peer(1, Heartbeat{Role: Joining, Active: Nobody})
			p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
			p.run(time.Second)
			before := p.m.Position()
			p.says(1, says)
			p.run(5 * time.Second)
			if p.m.Role() != Active || p.m.Position() != before || p.m.Frozen() {
				t.Errorf("is %v at %v, was active at %v; frozen: %v", p.m.Role(), p.m.Position(), before, p.m.Frozen())
			}
			if r, _ := p.m.Pointer(); r != 0 {
				t.Errorf("sends clients to node %d", r)
			}
		})
	}
}
