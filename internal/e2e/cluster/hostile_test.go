//go:build linux

package cluster

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"holdfast/internal/replica"
)

var quietJoiner = replica.Heartbeat{Role: replica.Joining, Active: replica.Nobody}

// C-64, C-65: a peer that has the secret and says what makes no sense is not
// believed, is turned away or is passed over, and the service does not notice.
func TestHostilePeer(t *testing.T) {
	s := newSet(t, 3)
	one, two := s.nodes[0], s.nodes[1]
	one.start()
	two.start()
	one.awaitRole("active")
	two.awaitRole("standby")
	marks := marksOf(s.nodes[:2])
	was := one.state()
	far := replica.Position{Epoch: replica.Epoch(was.Epoch), Seq: 1 << 52}
	here := replica.Position{Epoch: replica.Epoch(was.Epoch), Seq: 1}
	run := replica.AppendEvent(nil, []byte{4, 0, 3, 'k', 'e', 'y', 1}) // the end of a key that nobody has
	broken := []byte{0xFF, 0xFF, 0xFF, 0xFF, 1}
	for _, n := range []*node{one, two} {
		x := newImpostor(t, s, n, quietJoiner)
		for name, ms := range map[string][]replica.Message{
			"activate":          {&replica.Activate{ID: 1, Position: here}, &replica.Activate{}},
			"prepare":           {&replica.Prepare{ID: 1, Position: here, Hash: 1}, &replica.Activate{ID: 1, Position: here}},
			"prepared":          {&replica.Prepared{ID: 1, OK: true}, &replica.Prepared{ID: 0, OK: true}},
			"stream":            {&replica.Stream{ID: 1, Epoch: here.Epoch, First: 2, Events: run}},
			"stream, gap":       {&replica.Stream{ID: 1, Epoch: here.Epoch, First: 1 << 52, Events: run}},
			"stream, epoch":     {&replica.Stream{ID: 1, Epoch: 1 << 52, First: 1, Prev: here, Events: run}},
			"stream, broken":    {&replica.Stream{ID: 1, Epoch: here.Epoch, First: 2, Events: broken}},
			"chunk":             {&replica.Chunk{ID: 1, Position: here, First: true, Last: true, Events: run}},
			"follow from ahead": {&replica.Follow{ID: 9, Position: far, Whole: true}},
			"follow nothing":    {&replica.Follow{ID: math.MaxUint64}},
			"fetch":             {&replica.Fetch{ID: 3}, &replica.Fetch{ID: 4, Position: far, Whole: true}},
			"ack ahead":         {&replica.Follow{ID: 10}, &replica.Ack{ID: 10, Position: far}},
			"take back":         {&replica.TakeBack{}},
			"merged":            {&replica.Merged{ID: 1}, &replica.OfferRefused{ID: 1}, &replica.Diverged{}, &replica.Resume{}, &replica.Lost{}},
			"hash":              {&replica.Hash{ID: 1, Position: here, Hash: 1}, &replica.Hash{ID: 10, Position: far}},
			"chunk of no offer": {&replica.OfferChunk{ID: 1, Events: run}, &replica.OfferChunk{ID: 1, Last: true, Events: run}},
			"hello again":       {&replica.Hello{}, &replica.Hello{Name: "n1", Incarnation: 1}},
			"rank out of range": {&replica.Heartbeat{Nonce: 1 << 40, Role: replica.Active, Active: 7, ActiveEpoch: 1 << 52, ActiveAge: math.MaxInt64, Hears: 0xFF}},
			"refuse":            {&replica.Refuse{From: 7, Code: 200, Text: strings.Repeat("\x00", 1024)}},
		} {
			x.say(ms...)
			if !n.running() {
				t.Fatalf("%s ended after %q", n.name, name)
			}
		}
	}
	if is := one.state(); is.Epoch != was.Epoch {
		t.Errorf("the epoch went from %d to %d", was.Epoch, is.Epoch)
	}
	undisturbed(t, s.nodes[:2], marks)
	s.level(one)
}

// A flood of requests for the stream, and an offer that does not end and holds nothing that is known, take no memory.
func TestHostileFlood(t *testing.T) {
	s := newSet(t, 3)
	one, two := s.nodes[0], s.nodes[1]
	one.start()
	two.start()
	one.awaitRole("active")
	two.awaitRole("standby")
	marks := marksOf(s.nodes[:2])
	x := newImpostor(t, s, one, quietJoiner)
	for i := range 100 {
		var ms []replica.Message
		for j := range 200 {
			ms = append(ms, &replica.Follow{ID: uint64(200*i + j)})
		}
		x.say(ms...)
	}
	undisturbed(t, s.nodes[:2], marks)
	before := one.resident()
	x.say(&replica.Offer{ID: 1, Whole: false})
	chunk := bytes.Repeat(replica.AppendEvent(nil, []byte{255, 0}), 8000) // of no kind that is known
	for range 200 {
		x.say(&replica.OfferChunk{ID: 1, Events: chunk})
	}
	if after := one.resident(); after > before+64<<10 {
		t.Errorf("resident memory went from %d to %d KiB", before, after)
	}
	undisturbed(t, s.nodes[:2], marks)
}

// resident is the memory of the node's process, in KiB.
func (n *node) resident() (kib int) {
	n.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.life.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "VmRSS:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		n.t.Fatal(err)
	}
	return kib
}
