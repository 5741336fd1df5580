package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// A fault is reported with the first byte that shows it, and not before: a peer
// that announces nonsense is not waited for.
func TestFaultsAreFoundEarly(t *testing.T) {
	for _, c := range []struct{ name, frame string }{
		{"length too small", "00000007"},
		{"length too large", "00002001"},
		{"key over its limit", "00002000" + "41000401" + "00000007"},
		{"key longer than the frame", "0000000c" + "41000005" + "00000007"},
		{"bad key", "00002000" + "41000004" + "00000007" + "6a6f620a"},
		{"unknown op", "00002000" + "5a000000" + "00000007"},
		{"unknown op with a key to echo", "00002000" + "5a000004" + "00000007" + "6a6f6273"},
		{"key in a ping", "00002000" + "50000001" + "00000007" + "6a"},
		{"fields too short", "00000025" + "41000004" + "00000007" + "6a6f6273"},
	} {
		t.Run(c.name, func(t *testing.T) {
			frame, err := hex.DecodeString(c.frame)
			if err != nil {
				t.Fatal(err)
			}
			var r Request
			for i := range frame {
				if n, err := r.Decode(frame[:i]); n != 0 || err != nil {
					t.Fatalf("the first %d bytes: Decode = %d, %v", i, n, err)
				}
			}
			if _, err := r.Decode(frame); err == nil {
				t.Fatalf("%d bytes: no error", len(frame))
			}
		})
	}
}

// A connection decodes into one Request over and over: nothing may be left of
// the frame before.
func TestDecodeClearsWhatWasThere(t *testing.T) {
	var q Request
	for _, v := range loadVectors(t, "requests.json") {
		mustDecode(t, v.Hex, q.Decode)
		var fresh Request
		mustDecode(t, v.Hex, fresh.Decode)
		if !reflect.DeepEqual(q, fresh) {
			t.Errorf("%s: %+v, decoded afresh %+v", v.Name, q, fresh)
		}
	}
	var p Reply
	for _, v := range loadVectors(t, "replies.json") {
		mustDecode(t, v.Hex, p.Decode)
		var fresh Reply
		mustDecode(t, v.Hex, fresh.Decode)
		if !reflect.DeepEqual(p, fresh) {
			t.Errorf("%s: %+v, decoded afresh %+v", v.Name, p, fresh)
		}
	}
}

// Decoded slices are windows into the input that cannot be appended to in
// place; encoding keeps none of its input.
func TestWhoOwnsTheBytes(t *testing.T) {
	hello := &Request{Op: OpHello, Version: 1, Auth: []byte("auth"), Owner: []byte("owner"), Software: []byte("soft")}
	acquire := &Request{Op: OpAcquire, Key: []byte("jobs")}
	welcome := &Reply{Op: OpHello, Status: StatusWelcome, Node: []byte("n1"), Addr: []byte("a:1"), Software: []byte("soft"), ActiveNode: []byte("n1")}
	fault := &Reply{Op: OpAcquire, Status: StatusError, Key: []byte("jobs"), Message: []byte("message")}
	moved := &Reply{Op: OpAcquire, Status: StatusMoved, Key: []byte("jobs"), Addr: []byte("a:1"), Node: []byte("n1")}

	check := func(frame []byte, slices ...[]byte) {
		t.Helper()
		for i, s := range slices {
			if cap(s) != len(s) {
				t.Errorf("slice %d has room for %d bytes of the next field", i, cap(s)-len(s))
			}
		}
		clear(frame)
		for i, s := range slices {
			if len(s) == 0 || !bytes.Equal(s, make([]byte, len(s))) {
				t.Errorf("slice %d is %q, want a window into the cleared frame", i, s)
			}
		}
	}
	request := func(q *Request) (frame []byte, r Request) {
		frame = AppendRequest(nil, q)
		if _, err := r.Decode(frame); err != nil {
			t.Fatal(err)
		}
		return frame, r
	}
	reply := func(p *Reply) (frame []byte, r Reply) {
		frame = AppendReply(nil, p)
		if _, err := r.Decode(frame); err != nil {
			t.Fatal(err)
		}
		return frame, r
	}
	frame, q := request(hello)
	check(frame, q.Auth, q.Owner, q.Software)
	frame, q = request(acquire)
	check(frame, q.Key)
	frame, p := reply(welcome)
	check(frame, p.Node, p.Addr, p.Software, p.ActiveNode)
	frame, p = reply(fault)
	check(frame, p.Key, p.Message)
	frame, p = reply(moved)
	check(frame, p.Key, p.Addr, p.Node)
	if string(hello.Auth) != "auth" || string(acquire.Key) != "jobs" || string(fault.Message) != "message" {
		t.Error("an encoded frame shares bytes with what it was made from")
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	ping, pong := &Request{Op: OpPing, ID: 1}, &Reply{Op: OpPing, Status: StatusPong, ID: 1}
	for _, room := range []int{0, 5, 4096} {
		dst := append(make([]byte, 0, 6+room), "before"...)
		got := AppendReply(AppendRequest(dst, ping), pong)
		want := "before" + string(AppendRequest(nil, ping)) + string(AppendReply(nil, pong))
		if string(got) != want {
			t.Errorf("with room for %d more: %q, want %q", room, got, want)
		}
	}
}

// What cannot be a frame is refused by Check, and panics if it was not asked.
func TestRequestsThatCannotBeFrames(t *testing.T) {
	for name, r := range map[string]*Request{
		"key too long":      {Op: OpAcquire, Key: make([]byte, MaxKeyBytes+1)},
		"auth too long":     {Op: OpHello, Version: 1, Auth: make([]byte, maxBodyBytes-7)},
		"auth over a str":   {Op: OpHello, Version: 1, Auth: make([]byte, 1<<16)},
		"software too long": {Op: OpHello, Version: 1, Software: bytes.Repeat([]byte("s"), maxBodyBytes-7)},
	} {
		t.Run(name, func(t *testing.T) {
			if r.Check() == nil {
				t.Error("Check finds nothing wrong")
			}
			mustPanic(t, func() { AppendRequest(nil, r) })
		})
	}
	largest := &Request{Op: OpHello, Version: 1, Auth: make([]byte, maxBodyBytes-8)}
	if err := largest.Check(); err != nil {
		t.Errorf("the largest hello: %v", err)
	}
	if n := len(AppendRequest(nil, largest)); n != 4+MaxFrameBytes {
		t.Errorf("the largest hello has %d bytes, want %d", n, 4+MaxFrameBytes)
	}
}

func TestCheckFindsWhatDecodeWouldRefuse(t *testing.T) {
	for argument, r := range map[string]*Request{
		"op":      {Op: 'Z'},
		"key":     {Op: OpPing, Key: []byte("jobs")},
		"version": {Op: OpHello},
	} {
		if err := r.Check(); err == nil || !strings.HasPrefix(err.Error(), argument+":") {
			t.Errorf("Check(%v) = %v, want a fault of %s", r, err, argument)
		}
		if _, err := new(Request).Decode(AppendRequest(nil, r)); err == nil {
			t.Errorf("Decode accepts %v", r)
		}
	}
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if p := recover(); p == nil || !strings.HasPrefix(fmt.Sprint(p), "wire: ") {
			t.Errorf("panic value %v, want one of this package", p)
		}
	}()
	f()
}

// A reply never fails for the length of its texts: they are cut between runes,
// and the frame is full to within one rune.
func TestLongTextsOfRepliesAreCut(t *testing.T) {
	for _, unit := range []string{"a", "é", "語", "🔒", "\x80"} {
		long := []byte(strings.Repeat(unit, 70_000/len(unit)))
		for name, p := range map[string]*Reply{
			"error":             {Op: OpAcquire, Status: StatusError, Key: []byte("jobs"), Code: CodeInternal, Message: long},
			"error of long key": {Op: OpAcquire, Status: StatusError, Key: bytes.Repeat([]byte("k"), MaxKeyBytes), Message: long},
			"moved":             {Op: OpAcquire, Status: StatusMoved, Key: []byte("jobs"), Addr: long, Node: long},
			"moved node":        {Op: OpMoved, Addr: []byte("10.0.0.1:7620"), Node: long},
			"welcome":           {Op: OpHello, Status: StatusWelcome, Node: []byte("n1"), Addr: long, Software: long, ActiveNode: long},
			"welcome software":  {Op: OpHello, Status: StatusWelcome, Software: long},
		} {
			frame := AppendReply([]byte("before"), p)[len("before"):]
			if len(frame) > 4+MaxFrameBytes || len(frame) <= 4+MaxFrameBytes-len(unit) {
				t.Errorf("%s of %q: %d bytes", name, unit, len(frame))
			}
			var r Reply
			mustDecode(t, frame, r.Decode)
			for _, s := range [][]byte{r.Message, r.Addr, r.Node, r.Software, r.ActiveNode} {
				if unit != "\x80" && !utf8.Valid(s) {
					t.Errorf("%s of %q is cut within a rune", name, unit)
				}
			}
		}
	}
	mustPanic(t, func() {
		AppendReply(nil, &Reply{Op: OpAcquire, Status: StatusNotGranted, Key: make([]byte, MaxKeyBytes+1)})
	})
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""}, {"", 0, ""},
		{"é", 1, ""}, {"aé", 2, "a"}, {"aé", 3, "aé"}, {"a🔒", 4, "a"}, {"a🔒", 2, "a"}, {"🔒🔒", 7, "🔒"}, {"🔒", 3, ""},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80"}, {"\x80\x80", 1, "\x80"},
	} {
		if got := string(cut([]byte(c.s), c.limit)); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

func TestUnknownOpsHaveNoFields(t *testing.T) {
	want := []byte("\x00\x00\x00\x0cZ\x03\x00\x04\x00\x00\x00\x05jobs")
	if got := AppendRequest(nil, &Request{Op: 'Z', Flags: 3, ID: 5, Key: []byte("jobs"), Token: 1}); !bytes.Equal(got, want) {
		t.Errorf("request %q, want %q", got, want)
	}
	if got := AppendReply(nil, &Reply{Op: 'Z', Status: 3, ID: 5, Key: []byte("jobs"), Token: 1}); !bytes.Equal(got, want) {
		t.Errorf("reply %q, want %q", got, want)
	}
}
