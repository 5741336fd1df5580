package web

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/node"
)

// FuzzMessage holds the reader of messages against encoding/json: what it takes is
// one JSON object with that op and id, and no field of an op makes it fall over.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"op":"acquire","id":1,"key":"k","lease":1.5,"wait":"1m","try":true,"ticket":"000102030405060708090a0b0c0d0e0f"}`,
		`{"op":"watch","prefix":"a/","types":["role","grant","stats"]}`, `{"op":"watch","types":[]}`, `{"op":"watch","types":["\n"]}`,
		`{"op":"hello","auth":"s","owner":"\u00e4\ud83d\ude00"}`, `{"op":"cancel","id":2,"target":1}`, `{"op":"release","id":3,"key":"k","token":"9007199254740993"}`,
		`{}`, `[]`, `{"op":1}`, `{"op":"x","id":1e3}`, `{"op":"x","a":[1]}`, `{"op":"x","a":["b",]}`, `{"op":"x","a":[["b"]]}`, "{\"op\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := readMessage(text)
		if err != nil {
			return
		}
		// By the exact names: into a struct encoding/json would take "Id" for "id", which this protocol does not.
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatalf("%q is taken: %v", text, err)
		}
		var op string
		var id uint64
		read := func(name string, into any) bool {
			return fields[name] == nil || json.Unmarshal(fields[name], into) == nil
		}
		if !read("op", &op) || !read("id", &id) || op != m.op || id != m.id {
			t.Fatalf("%q is read as %q, %d", text, m.op, m.id)
		}
		for _, decode := range []func(*message) error{
			func(m *message) error { _, err := decodeMessage(wsAcquireSchema, m); return err },
			func(m *message) error { _, err := decodeMessage(wsWatchSchema, m); return err },
			func(m *message) error { _, err := decodeMessage(wsHelloSchema, m); return err },
			func(m *message) error { _, err := decodeMessage(wsCancelSchema, m); return err },
			func(m *message) error { _, err := decodeMessage(extendSchema, m); return err },
		} {
			if err := decode(&m); err != nil && badInput(err) == nil {
				t.Fatal("a refusal without words")
			}
		}
	})
}

func TestMessageFields(t *testing.T) {
	m, err := readMessage([]byte(` { "types" : [ "role" , "stats" ] , "op" : "watch", "prefix":"" } `))
	if err != nil {
		t.Fatal(err)
	}
	in, err := decodeMessage(wsWatchSchema, &m)
	if err != nil || *in.prefix != "" || !in.types.stats || !slices.Equal(in.types.notices, []node.NoticeType{node.NoticeRole}) {
		t.Errorf("%+v, %v", in, err)
	}
	if _, err := readMessage([]byte(`{"op":"x"` + strings.Repeat(`,"a":1`, 3) + "}")); err == nil {
		t.Error("a field twice is taken")
	}
	many := `{"op":"x"`
	for i := range maxFields {
		many += `,"` + strings.Repeat("f", i+1) + `":1`
	}
	if _, err := readMessage([]byte(many + "}")); err == nil {
		t.Error("too many fields are taken")
	}
}
