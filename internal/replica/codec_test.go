package replica

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// fill sets every field of a message to something that may stand in it.
func fill(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), r)
		}
	case reflect.Slice:
		n := 1 + r.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), r)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", r.IntN(1000)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int64:
		n := r.Int64N(1 << 40)
		if v.Type() == reflect.TypeFor[time.Duration]() {
			n -= n % 1000 // a microsecond
		}
		v.SetInt(n)
	case reflect.Int8:
		v.SetInt(int64(r.IntN(MaxNodes)))
	case reflect.Uint8:
		v.SetUint(1 + r.Uint64N(3))
	case reflect.Uint16:
		v.SetUint(r.Uint64N(1 << 16))
	case reflect.Uint64:
		v.SetUint(r.Uint64N(MaxHeard))
	default:
		panic("no value for " + v.Type().String())
	}
}

// sample is a message of a kind, drawn by a seed.
func sample(k Kind, seed uint64) Message {
	r := rand.New(rand.NewPCG(seed, uint64(k)))
	m := newMessage(k)
	fill(reflect.ValueOf(m).Elem(), r)
	var l *Lineage
	switch m := m.(type) {
	case *Hello:
		l = &m.Lineage
	case *Follow:
		l = &m.Lineage
	case *Fetch:
		l = &m.Lineage
	case *Offer:
		l = &m.Lineage
	case *Chunk:
		l = &m.Lineage
		m.First = true
	case *Stream:
		l = &m.Lineage
		m.First = 1
	}
	if l != nil {
		*l = l.succeed(Position{}) // in order
		sorted := Lineage{}
		for i := range 3 {
			sorted = sorted.with(Reign{Epoch(r.Uint64N(MaxHeard)), Seq(i), Seq(i)})
		}
		*l = sorted
	}
	return m
}

func TestMessagesRoundTrip(t *testing.T) {
	for k := Kind(1); k < numKinds; k++ {
		for seed := range uint64(50) {
			want := sample(k, seed)
			b := AppendMessage([]byte("before"), want)[len("before"):]
			got, err := DecodeMessage(b)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("kind %d: %v\n got %+v\nwant %+v", k, err, got, want)
			}
			more, err := DecodeMessage(append(b[:len(b):len(b)], 1, 2, 3))
			if err != nil || !reflect.DeepEqual(more, want) {
				t.Fatalf("kind %d with unknown fields at its end: %v, %+v", k, err, more)
			}
			for cut := range len(b) {
				if m, err := DecodeMessage(b[:cut]); err == nil {
					t.Fatalf("kind %d cut to %d of %d bytes was read as %+v", k, cut, len(b), m)
				}
			}
		}
	}
}

// TestMessageBytes keeps the bytes of each kind: a change is a change of the protocol.
func TestMessageBytes(t *testing.T) {
	var out strings.Builder
	for k := Kind(1); k < numKinds; k++ {
		m := sample(k, 1)
		fmt.Fprintf(&out, "%T\n%+v\n%s\n\n", m, reflect.ValueOf(m).Elem(), hex.EncodeToString(AppendMessage(nil, m)))
	}
	const file = "testdata/messages.golden"
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("%s: the bytes have changed; if the protocol was to change, run with -rewrite", file)
	}
}

func TestMessagesRefused(t *testing.T) {
	hello := AppendMessage(nil, sample(KindHello, 1))
	longName := append([]byte{byte(KindHello), 0xff, 0xff}, hello[3:]...)
	role := AppendMessage(nil, sample(KindHeartbeat, 1))
	role[1+8+8] = 9
	chunk := AppendMessage(nil, &OfferChunk{ID: 1, Events: []byte("x")})
	chunk[len(chunk)-2] = 0xff // a length beyond the message
	disordered := AppendMessage(nil, &Follow{Lineage: Lineage{{Epoch: 2}, {Epoch: 1}}[:1]})
	epoch := AppendMessage(nil, &Ack{ID: 1, Position: Position{5, 6}})
	epoch[9] = 1
	for name, b := range map[string][]byte{
		"an epoch beyond 2^53": epoch,
		"nothing":              {}, "a name beyond its bound": longName, "an unknown role": role,
		"events beyond the message": chunk, "cut lineage": disordered[:len(disordered)-10],
		"events beyond the bound": {byte(KindOfferChunk), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
	} {
		if m, err := DecodeMessage(b); err == nil {
			t.Errorf("%s: read as %+v", name, m)
		}
	}
	if m, err := DecodeMessage([]byte{200, 1, 2}); m != nil || err != nil {
		t.Errorf("an unknown kind: %v, %v; want to be ignored", m, err)
	}
}

// FuzzDecode: nothing a peer sends makes the decoder panic, and what it reads
// it writes alike.
func FuzzDecode(f *testing.F) {
	for k := Kind(1); k < numKinds; k++ {
		f.Add(AppendMessage(nil, sample(k, 2)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		if m == nil || err != nil {
			return
		}
		once := AppendMessage(nil, m)
		again, err := DecodeMessage(once)
		if err != nil || !bytes.Equal(once, AppendMessage(nil, again)) {
			t.Fatalf("%+v was written as %x and read as %+v, %v", m, once, again, err)
		}
	})
}

// FuzzMachine feeds a node what a peer might send once its hello was accepted,
// between heartbeats that keep it alive: whatever comes, no panic.
func FuzzMachine(f *testing.F) {
	for k := Kind(1); k < numKinds; k++ {
		for seed := range uint64(3) {
			a, b := sample(k, seed), sample(1+(k+Kind(seed))%(numKinds-1), seed)
			for i, m := range []Message{a, b} { // of a stream that is under way
				if id := reflect.ValueOf(m).Elem().FieldByName("ID"); id.IsValid() {
					id.SetUint(1 + (seed+uint64(i))%3)
				}
			}
			f.Add(AppendMessage(nil, a), AppendMessage(nil, b), uint8(k)+uint8(seed))
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte, mode uint8) {
		cfg := DefaultConfig()
		cfg.LogBytes = 1 << 10
		w := newWorld(1, 2, cfg)
		for _, n := range w.nodes {
			n.start()
		}
		w.run(500 * time.Millisecond)
		n := w.nodes[mode%2]
		if mode&2 != 0 {
			n.request(request{op: "acquire", key: "k1", ticket: "x", reply: func(answer) {}})
		}
		if mode&4 != 0 {
			n.m.Step(n.time(), Tick{}, new(Actions))
			w.nodes[1-mode%2].crash()
			w.run(10 * time.Millisecond)
			n.start()
			w.nodes[1-mode%2].start()
			w.run(10 * time.Millisecond)
		}
		for _, data := range [][]byte{first, second} {
			if n.up && len(n.wires) > 0 {
				n.feed(Received{Link: n.wires[0].id, Data: data})
			}
			w.run(150 * time.Millisecond)
		}
		w.run(1500 * time.Millisecond)
	})
}
