package locks_test

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "holdfast/internal/locks"
)

// choicesPerStep is how many bytes decide one step.
const choicesPerStep = 24

// runChoices takes a profile through steps that bytes decide: each step has its
// own, so that leaving one out, or making one simpler, changes no other.
func runChoices(p *profile, choices []byte) error {
	var left []byte
	pick := func(n int) int {
		switch {
		case len(left) == 0:
			return 0
		case n <= 256 || len(left) == 1:
			v := int(left[0]) % n
			left = left[1:]
			return v
		}
		v := int(binary.BigEndian.Uint16(left)) % n
		left = left[2:]
		return v
	}
	d := newDrawer(p, pick, &coverage{})
	d.every = 8
	for len(choices) > 0 {
		left = choices[:min(choicesPerStep, len(choices))]
		choices = choices[len(left):]
		if err := d.step(); err != nil {
			return err
		}
	}
	return d.compareAll()
}

// TestModelShrinks is the random test for people: what it finds it makes small.
func TestModelShrinks(t *testing.T) {
	for i := range profiles {
		p := &profiles[i]
		t.Run(p.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				step := rapid.SliceOfN(rapid.Byte(), choicesPerStep, choicesPerStep)
				var choices []byte
				for _, s := range rapid.SliceOfN(step, 1, 100).Draw(rt, "steps") {
					choices = append(choices, s...)
				}
				if err := runChoices(p, choices); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// FuzzTable lets the fuzzer choose the steps.
func FuzzTable(f *testing.F) {
	for i := range profiles {
		f.Add(uint8(i), []byte("a profile, and then bytes that decide what is done, so many for each step"))
	}
	f.Fuzz(func(t *testing.T, which uint8, choices []byte) {
		choices = choices[:min(len(choices), 400*choicesPerStep)]
		if err := runChoices(&profiles[int(which)%len(profiles)], choices); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzApply feeds a follower what no table would send. It may refuse, and must
// stand. Then it begins a reign and serves.
func FuzzApply(f *testing.F) {
	f.Add([]byte("\x02\x00k0123456789012345678901"))
	f.Add([]byte("\x05\x00k0123456789012345678901\x02\x00k0123456789012345678901"))
	f.Fuzz(func(t *testing.T, data []byte) {
		follower := New(ordinary().cfg)
		now := Time(1)
		for ; len(data) >= 8; data = data[8:] {
			follower.Apply(now, oddEvent(data[:8]))
			now += Time(data[7])
		}
		if err := follower.Check(); err != nil {
			t.Fatal(err)
		}
		serveAll(t, follower, now)
	})
}

// oddEvent makes an event of 8 bytes.
func oddEvent(b []byte) *Event {
	e := &Event{
		Kind: EventKind(b[0] % 10), Flags: Flags(b[1]), Reason: Reason(b[2]), Slots: uint16(b[2]) % 4,
		Key: keyName(int(b[3]) % 4), Token: Token(b[4] % 16), Ticket: Ticket{b[5] % 4},
		Lease: time.Duration(int8(b[6])) * ms, Wait: time.Duration(int8(b[7])) * ms,
	}
	if b[1]&0x80 != 0 {
		e.Origin = origins[b[2]%4]
	}
	return e
}

// serveAll lets a table that was a follower serve until every key is free.
func serveAll(t *testing.T, table *Table, now Time) {
	var fx Effects
	table.Activate(now, 0, &fx)
	table.Do(now, &Command{Op: OpAttach, Session: 1 << 32, Origin: origins[0]}, &fx)
	for i := range 4 {
		table.Do(now, &Command{Op: OpAcquire, Session: 1 << 32, Key: keyName(i), Wait: ms}, &fx)
	}
	for range 1000 {
		if table.Next() == Never {
			break
		}
		now = max(now, table.Next())
		table.Advance(now, 0, &fx)
		fx.Reset()
	}
	if err := table.Check(); err != nil {
		t.Fatal(err)
	}
	if s := table.Stats(); s.Keys != 0 {
		t.Fatalf("after every lease and wait is over, %+v stands", s)
	}
}
