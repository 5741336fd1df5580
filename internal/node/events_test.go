package node

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// randomEvent makes an event with the fields of its kind set, as the codec
// keeps them: durations in whole microseconds.
func randomEvent(r *rand.Rand, keys []string, origins []*locks.Origin) locks.Event {
	kinds := []locks.EventKind{
		locks.EventEpoch, locks.EventGrant, locks.EventExtend, locks.EventEnd, locks.EventEnqueue, locks.EventDequeue,
		locks.EventClear, locks.EventReset, locks.EventEnded, locks.EventTrim,
	}
	ev := locks.Event{Kind: kinds[r.IntN(len(kinds))]}
	span := func() time.Duration { return time.Duration(r.Int64N(1<<40)) / time.Microsecond * time.Microsecond }
	ticket := func() (t locks.Ticket) {
		for i := range t {
			t[i] = byte(r.Uint32())
		}
		return t
	}
	token := locks.Token(r.Uint64N(replica.MaxHeard))
	if hasKey(ev.Kind) {
		ev.Key = []byte(keys[r.IntN(len(keys))])
	}
	switch ev.Kind {
	case locks.EventEpoch:
		ev.Token = token
	case locks.EventGrant:
		ev.Token, ev.Lease, ev.Slots, ev.Origin = token, span(), uint16(r.Uint32()), origins[r.IntN(len(origins))]
		if r.IntN(2) == 0 {
			ev.Ticket = ticket()
		}
		ev.Flags = locks.Shared | locks.Bound
	case locks.EventExtend:
		ev.Token, ev.Lease = token, span()
	case locks.EventEnd:
		ev.Token, ev.Reason = token, locks.ByForce
	case locks.EventEnqueue:
		ev.Lease, ev.Wait, ev.Slots, ev.Ticket, ev.Origin = span(), span(), 1, ticket(), origins[r.IntN(len(origins))]
		ev.Flags = locks.Contended
	case locks.EventDequeue:
		ev.Ticket, ev.Reason = ticket(), locks.ByTimeout
	case locks.EventEnded:
		ev.Token, ev.Index = token, r.Uint64N(1<<40)
	case locks.EventClear, locks.EventTrim:
		ev.Index = r.Uint64N(1 << 40)
	}
	return ev
}

func TestEventsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	keys := []string{"a", "jobs/nightly", strings.Repeat("k", locks.MaxKeyLength)}
	origins := []*locks.Origin{
		{Owner: "host/job", Remote: "10.0.0.1:4711", Transport: "native", Identity: "ops"},
		{Owner: "", Remote: "[::1]:1", Transport: "http"}, {Transport: "pigeon"}, new(locks.Origin),
	}
	for _, whole := range []bool{false, true} {
		e, d := encoder{whole: whole}, decoder{}
		for range 200 {
			var events []locks.Event
			for range r.IntN(20) {
				events = append(events, randomEvent(r, keys, origins))
			}
			e.begin()
			e.addAll(events)
			var got []locks.Event
			if unread := d.eachEvent(bytes.Clone(e.run), func(ev *locks.Event) { got = append(got, *ev) }); unread != 0 {
				t.Fatalf("%d events could not be read", unread)
			}
			if len(got) != len(events) {
				t.Fatalf("%d events of %d", len(got), len(events))
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], events[i]) {
					t.Fatalf("event %d is\n%+v, was\n%+v", i, got[i], events[i])
				}
			}
		}
	}
}

// In the stream the log is cut anywhere, so no event may lean on another.
func TestEventsOfTheStreamStandForThemselves(t *testing.T) {
	o := &locks.Origin{Owner: "x"}
	ev := locks.Event{Kind: locks.EventGrant, Key: []byte("k"), Token: 8, Slots: 1, Origin: o}
	var e encoder
	e.begin()
	e.addAll([]locks.Event{ev, ev})
	first, rest, _ := replica.NextEvent(e.run)
	second, _, _ := replica.NextEvent(rest)
	if !bytes.Equal(first, second) {
		t.Errorf("the same event twice is %x and %x", first, second)
	}
	c := encoder{whole: true}
	c.begin()
	c.addAll([]locks.Event{ev, ev})
	if len(c.run) >= len(e.run) {
		t.Errorf("a piece that travels whole takes %d bytes, the stream %d", len(c.run), len(e.run))
	}
}

func TestEventsSpans(t *testing.T) {
	var e encoder
	e.begin()
	e.addAll([]locks.Event{
		{Kind: locks.EventGrant, Key: []byte("k"), Lease: -time.Second},
		{Kind: locks.EventGrant, Key: []byte("k"), Lease: 1999},
		{Kind: locks.EventEnqueue, Key: []byte("k"), Wait: 1},
		{Kind: locks.EventEnqueue, Key: []byte("k"), Wait: 0},
	})
	want := []time.Duration{0, time.Microsecond, time.Microsecond, 0} // never longer, and never "no bound" for what has one
	var d decoder
	i := 0
	d.eachEvent(e.run, func(ev *locks.Event) {
		if got := ev.Lease + ev.Wait; got != want[i] {
			t.Errorf("span %d is %v, want %v", i, got, want[i])
		}
		i++
	})
}

func TestEventsAllocateNothing(t *testing.T) {
	o := &locks.Origin{Owner: "host/job", Remote: "10.0.0.1:4711", Transport: "native"}
	events := []locks.Event{
		{Kind: locks.EventGrant, Key: []byte("jobs/nightly"), Token: 1 << 50, Slots: 1, Lease: time.Minute, Origin: o},
		{Kind: locks.EventEnd, Key: []byte("jobs/nightly"), Token: 1 << 50, Reason: locks.ByRelease},
	}
	var e encoder
	var d decoder
	count := func(*locks.Event) {}
	round := func() {
		e.begin()
		e.addAll(events)
		d.eachEvent(e.run, count)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzEvents: nothing that a peer sends can do more than be ignored.
func FuzzEvents(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		e := encoder{whole: r.IntN(2) == 0}
		e.begin()
		for range 5 {
			ev := randomEvent(r, []string{"a", "b"}, []*locks.Origin{{Owner: "o"}})
			e.add(&ev)
		}
		f.Add(bytes.Clone(e.run))
	}
	f.Fuzz(func(t *testing.T, run []byte) {
		cfg := locks.DefaultConfig()
		cfg.KeepEnded = true
		table := locks.New(cfg)
		var d decoder
		d.eachEvent(run, func(ev *locks.Event) { table.Apply(0, ev) })
		if err := table.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkEvents(b *testing.B) {
	o := &locks.Origin{Owner: "host/job", Remote: "10.0.0.1:4711", Transport: "native"}
	events := []locks.Event{
		{Kind: locks.EventGrant, Key: []byte("jobs/nightly"), Token: 1 << 50, Slots: 1, Lease: time.Minute, Origin: o},
		{Kind: locks.EventEnd, Key: []byte("jobs/nightly"), Token: 1 << 50, Reason: locks.ByRelease},
	}
	var e encoder
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			e.begin()
			e.addAll(events)
		}
	})
	var d decoder
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			d.eachEvent(e.run, func(*locks.Event) {})
		}
	})
}
