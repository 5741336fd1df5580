package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "compute the outputs in testdata/*.json anew")

// eachVector runs test on every vector of a file. With -rewrite it first lets
// compute set the outputs from the inputs, and writes the file.
func eachVector(t *testing.T, file string, compute func(*testing.T, *vector), test func(*testing.T, vector)) {
	vectors := loadVectors(t, file)
	if *rewrite {
		for i := range vectors {
			compute(t, &vectors[i])
		}
		saveVectors(t, file, vectors)
	}
	seen := map[string]bool{}
	for _, v := range vectors {
		if seen[v.Name] {
			t.Errorf("%s: two vectors are named %s", file, v.Name)
		}
		seen[v.Name] = true
		t.Run(v.Name, func(t *testing.T) { test(t, v) })
	}
}

func loadVectors(t testing.TB, file string) (vectors []vector) {
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&vectors); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(vectors) == 0 {
		t.Fatalf("%s: no vectors", file)
	}
	return vectors
}

func saveVectors(t *testing.T, file string, vectors []vector) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(vectors); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", file), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withTrailing appends bytes that the receiver does not know to a lone frame.
func withTrailing(frame, trailing []byte) []byte {
	frame = append(frame, trailing...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

func TestRequestVectors(t *testing.T) {
	encode := func(v *vector) hexBytes { return withTrailing(AppendRequest(nil, v.Frame.request()), v.Trailing) }
	eachVector(t, "requests.json", func(t *testing.T, v *vector) {
		v.Frame, v.Hex = requestFields(v.Frame.request()), encode(v)
	}, func(t *testing.T, v vector) {
		if got := encode(&v); !bytes.Equal(got, v.Hex) {
			t.Errorf("encoded\n%x, want\n%x", got, v.Hex)
		}
		var r Request
		checkPrefixes(t, v.Hex, r.Decode)
		mustDecode(t, v.Hex, r.Decode)
		if want := plainRequest(*v.Frame.request()); !reflect.DeepEqual(plainRequest(r), want) {
			t.Errorf("decoded\n%+v, want\n%+v", r, want)
		}
		if err := r.Check(); err != nil {
			t.Errorf("Check: %v", err)
		}
	})
}

func TestReplyVectors(t *testing.T) {
	encode := func(v *vector) hexBytes { return withTrailing(AppendReply(nil, v.Frame.reply()), v.Trailing) }
	eachVector(t, "replies.json", func(t *testing.T, v *vector) {
		v.Frame, v.Hex = replyFields(v.Frame.reply()), encode(v)
	}, func(t *testing.T, v vector) {
		if got := encode(&v); !bytes.Equal(got, v.Hex) {
			t.Errorf("encoded\n%x, want\n%x", got, v.Hex)
		}
		var r Reply
		checkPrefixes(t, v.Hex, r.Decode)
		mustDecode(t, v.Hex, r.Decode)
		if want := plainReply(*v.Frame.reply()); !reflect.DeepEqual(plainReply(r), want) {
			t.Errorf("decoded\n%+v, want\n%+v", r, want)
		}
	})
}

// Frames that end the connection, with the answer that their sender gets.
func TestMalformedVectors(t *testing.T) {
	answer := func(t *testing.T, v *vector) *fields {
		var r Request
		checkPrefixes(t, v.Hex, r.Decode)
		n, err := r.Decode(v.Hex)
		var fault *FrameError
		if !errors.As(err, &fault) || n != 0 {
			t.Fatalf("Decode = %d, %v; want a FrameError", n, err)
		}
		reply := fault.Answer()
		f := replyFields(&reply)
		f.Message = nil // its words are the server's own
		return f
	}
	eachVector(t, "malformed.json", func(t *testing.T, v *vector) {
		v.Answer = answer(t, v)
	}, func(t *testing.T, v vector) {
		if got := answer(t, &v); !reflect.DeepEqual(got, v.Answer) {
			t.Errorf("answer %s, want %s", asJSON(t, got), asJSON(t, v.Answer))
		}
	})
}

// Replies that no server sends; a client gives the connection up.
func TestMalformedReplyVectors(t *testing.T) {
	eachVector(t, "malformed_replies.json", func(*testing.T, *vector) {}, func(t *testing.T, v vector) {
		var r Reply
		checkPrefixes(t, v.Hex, r.Decode)
		n, err := r.Decode(v.Hex)
		var fault *FrameError
		if !errors.As(err, &fault) || n != 0 {
			t.Fatalf("Decode = %d, %v; want a FrameError", n, err)
		}
	})
}

// Well-formed requests that are answered with error 4; the connection stays.
func TestArgumentVectors(t *testing.T) {
	answer := func(t *testing.T, v *vector) *fields {
		var r Request
		checkPrefixes(t, v.Hex, r.Decode)
		mustDecode(t, v.Hex, r.Decode)
		err := r.Check()
		var fault *ArgumentError
		if !errors.As(err, &fault) {
			t.Fatalf("Check = %v, want an ArgumentError", err)
		}
		if !strings.HasPrefix(fault.Detail, v.Argument+":") {
			t.Errorf("detail %q does not begin with the argument %q", fault.Detail, v.Argument)
		}
		f := replyFields(&Reply{Op: r.Op, Status: StatusError, ID: r.ID, Key: r.Key, Code: CodeBadArgument})
		f.Message = nil
		return f
	}
	eachVector(t, "arguments.json", func(t *testing.T, v *vector) {
		v.Answer = answer(t, v)
	}, func(t *testing.T, v vector) {
		if got := answer(t, &v); !reflect.DeepEqual(got, v.Answer) {
			t.Errorf("answer %s, want %s", asJSON(t, got), asJSON(t, v.Answer))
		}
	})
}

// Every row of the protocol's tables has a golden frame.
func TestVectorsAreComplete(t *testing.T) {
	ops := map[Op]bool{}
	for _, v := range loadVectors(t, "requests.json") {
		ops[v.Frame.request().Op] = true
	}
	for op := range 256 {
		if known := minRequestBytes(Op(op)) >= 0; known != ops[Op(op)] {
			t.Errorf("request %v: known %v, golden frame %v", Op(op), known, ops[Op(op)])
		}
	}
	replies := map[[2]byte]bool{}
	var seen [numKinds]bool
	for _, v := range loadVectors(t, "replies.json") {
		r := v.Frame.reply()
		replies[[2]byte{byte(r.Op), byte(r.Status)}] = true
		seen[kindOf(r.Op, r.Status)] = true
	}
	for k := kindUnknown + 1; k < numKinds; k++ {
		if !seen[k] {
			t.Errorf("reply %q has no golden frame", kinds[k].name)
		}
	}
	for _, row := range []string{"HA", "AA", "AT", "AC", "RR", "EE", "RN", "EN", "CC", "CN", "PP", "AM", "RM", "EM",
		"HX", "AX", "RX", "EX", "CX", "PX", "XX", "L\x00", "M\x00", "W\x00"} {
		if !replies[[2]byte{row[0], row[1]}] {
			t.Errorf("reply %q has no golden frame", row)
		}
	}
}

// mustDecode decodes frame, followed by the start of another one.
func mustDecode(t *testing.T, frame []byte, decode func([]byte) (int, error)) {
	t.Helper()
	if n, err := decode(frame); n != len(frame) || err != nil {
		t.Fatalf("Decode = %d, %v; want %d", n, err, len(frame))
	}
	followed := append(bytes.Clone(frame), 0, 0, 0, 99, 'Z')
	if n, err := decode(followed); n != len(frame) || err != nil {
		t.Fatalf("followed by another frame: Decode = %d, %v; want %d", n, err, len(frame))
	}
}

// checkPrefixes checks that the verdict on a frame does not depend on how much
// of it is there: nothing is said, or what is said of the whole.
func checkPrefixes(t *testing.T, frame []byte, decode func([]byte) (int, error)) {
	t.Helper()
	_, whole := decode(frame)
	for i := range len(frame) {
		n, err := decode(frame[:i:i])
		if n != 0 || err != nil && !reflect.DeepEqual(err, whole) {
			t.Fatalf("the first %d bytes: Decode = %d, %v; the whole: %v", i, n, err, whole)
		}
	}
}

// plainRequest makes requests comparable: no bytes are nil, however they came about.
func plainRequest(r Request) Request {
	for _, b := range []*[]byte{&r.Key, &r.Auth, &r.Owner, &r.Software} {
		*b = append([]byte(nil), *b...)
	}
	return r
}

func plainReply(r Reply) Reply {
	for _, b := range []*[]byte{&r.Key, &r.Message, &r.Addr, &r.Node, &r.Software, &r.ActiveNode} {
		*b = append([]byte(nil), *b...)
	}
	return r
}

func asJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
