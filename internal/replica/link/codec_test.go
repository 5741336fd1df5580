package link

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"holdfast/internal/replica"
)

// The bytes of the handshake, for whoever writes the other side.
func TestHandshakeBytes(t *testing.T) {
	q := appendRequest(nil, secret, 0x0102030405060708, "n0", "node1")
	head, tail := hex.EncodeToString(q[:9]), hex.EncodeToString(q[9+nonceBytes:len(q)-macBytes])
	if head != "010102030405060708" || tail != "026e30056e6f646531" {
		t.Errorf("request %s … %s", head, tail)
	}
	if bytes.Equal(q[9:9+nonceBytes], appendRequest(nil, secret, 1, "n0", "n1")[9:9+nonceBytes]) {
		t.Error("two requests have one nonce")
	}
	got, err := decodeRequest(q)
	if err != nil || got.at != 0x0102030405060708 || got.from != "n0" || got.to != "node1" || !got.fits([]string{"x", secret}) {
		t.Errorf("decoded %+v, %v", got, err)
	}
	a, err := decodeAnswer(appendAnswer(nil, "n1"))
	if err != nil || a.name != "n1" || len(a.raw) != 1+nonceBytes+3 {
		t.Errorf("decoded %+v, %v", a, err)
	}
	mac := prove("key", requestLabel, []byte("The quick brown fox "), []byte("jumps over the lazy dog"))
	if got := hex.EncodeToString(mac); got != "7c5704c6afeb2fa8263a67ec690d8cc0169b858ad0c80e054ed25ed4190b9921" {
		t.Errorf("mac %s", got)
	}
	long := strings.Repeat("n", maxNameBytes)
	if n := len(appendRequest(nil, secret, 0, long, long)); n != maxRequestBytes {
		t.Errorf("the longest request has %d bytes, want %d", n, maxRequestBytes)
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add(appendRequest(nil, secret, 5, "n0", "n1"))
	f.Add(appendAnswer(nil, "n1"))
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := decodeRequest(b); err == nil {
			if len(b) > maxRequestBytes || q.from == "" || q.to == "" {
				t.Errorf("decoded %+v of %d bytes", q, len(b))
			}
			again := appendName(appendName(bytes.Clone(b[:9+nonceBytes]), q.from), q.to)
			if !bytes.Equal(again, b[:len(b)-macBytes]) {
				t.Errorf("encoded again: %x, was %x", again, b)
			}
			if q.fits([]string{secret}) != bytes.Equal(b[len(b)-macBytes:], prove(secret, requestLabel, b[:len(b)-macBytes])) {
				t.Error("fits is wrong")
			}
		}
		if a, err := decodeAnswer(b); err == nil && (len(b) > maxAnswerBytes || a.name == "") {
			t.Errorf("decoded %+v of %d bytes", a, len(b))
		}
		if got, err := decodeHeader([]string{encoding.EncodeToString(b)}, maxRequestBytes); err == nil && !bytes.Equal(got, b) {
			t.Errorf("header decoded to %x, was %x", got, b)
		}
		decodeHeader([]string{string(b)}, maxRequestBytes)
	})
}

// However a stream is cut into pieces, the messages are the same, and no
// garbage makes the assembler keep more than it was given.
func FuzzAssembler(f *testing.F) {
	f.Add(stream(lost(1), lost(2), chunk(3, 300)), []byte{1, 3, 200})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 7, 0xff}, []byte{4})
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		const most = 1000
		var whole, pieces [][]byte
		keep := func(to *[][]byte) func([]byte) {
			return func(msg []byte) { *to = append(*to, bytes.Clone(msg)) }
		}
		one, many := assembler{max: most}, assembler{max: most}
		errOne := one.feed(b, keep(&whole))
		var errMany error
		left := b
		for i := 0; len(left) > 0 && errMany == nil; i++ {
			n := len(left)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)]))
			}
			piece := bytes.Clone(left[:n])
			errMany = many.feed(piece, keep(&pieces))
			clear(piece) // lent
			left = left[n:]
		}
		if (errOne == nil) != (errMany == nil) || len(whole) != len(pieces) {
			t.Fatalf("%d messages, %v; in pieces %d, %v", len(whole), errOne, len(pieces), errMany)
		}
		for i := range whole {
			if !bytes.Equal(whole[i], pieces[i]) || len(whole[i]) > most {
				t.Fatalf("message %d: %x, in pieces %x", i, whole[i], pieces[i])
			}
		}
		if len(many.partial) > most+lengthBytes {
			t.Errorf("keeps %d bytes", len(many.partial))
		}
	})
}

// The longest messages of the machine fit.
func TestLongestMessages(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	h := &replica.Hello{Name: long(255), Software: long(255), Native: long(512), Limits: make([]byte, 256)}
	for range replica.MaxNodes {
		h.Names, h.HTTP = append(h.Names, long(255)), append(h.HTTP, long(512))
	}
	if n := len(replica.AppendMessage(nil, h)); n > maxControlBytes/2 {
		t.Errorf("a hello has %d bytes", n)
	}
	if n := len(replica.AppendMessage(nil, &replica.Chunk{Events: make([]byte, 4<<20)})); n > maxBulkBytes-8<<10 {
		t.Errorf("a chunk has %d bytes", n)
	}
}

// A length that promises much takes no memory before the bytes are there, and one that promises too much ends the link.
func TestPromisedBytes(t *testing.T) {
	none := func([]byte) { t.Error("a message") }
	a := assembler{max: maxBulkBytes}
	piece := make([]byte, pieceBytes)
	binary.BigEndian.PutUint32(piece, maxBulkBytes)
	fed := 0
	for range 20 {
		if err := a.feed(piece, none); err != nil {
			t.Fatal(err)
		}
		clear(piece)
		if fed += len(piece); cap(a.partial) > 2*fed {
			t.Fatalf("%d bytes are set aside for %d", cap(a.partial), fed)
		}
	}
	binary.BigEndian.PutUint32(piece, maxBulkBytes+1)
	if err := (&assembler{max: maxBulkBytes}).feed(piece, none); err == nil || !strings.Contains(err.Error(), "at most 134217728") {
		t.Error(err)
	}
}

// What does not fit into its lane ends the link.
func TestOutboxBounds(t *testing.T) {
	for _, tt := range []struct {
		name string
		fill func(o *outbox)
		want string
	}{
		{"long control", func(o *outbox) { o.send(replica.Control, chunk(1, maxControlBytes)) }, "a message of kind 18 has"},
		{"a chunk of the usual", func(o *outbox) { o.send(replica.Bulk, chunk(1, 4<<20)) }, ""},
		{"a key of many waiters", func(o *outbox) { o.send(replica.Bulk, chunk(1, 20<<20)) }, ""},
		{"a little more after it", func(o *outbox) {
			o.send(replica.Bulk, chunk(1, 20<<20))
			o.send(replica.Bulk, chunk(1, 1))
		}, "not pulled"},
		{"bulk that nobody asked for", func(o *outbox) {
			o.send(replica.Bulk, chunk(1, 3<<20))
			o.send(replica.Bulk, chunk(1, 3<<20))
		}, "not pulled"},
	} {
		o := newOutbox()
		tt.fill(&o)
		err := o.cause()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && o.control.filling != nil {
			t.Errorf("%s: something is kept", tt.name)
		}
	}
}

// Large buffers do not stay.
func TestRecycle(t *testing.T) {
	o := newOutbox()
	o.send(replica.Bulk, chunk(1, 1<<20))
	o.take(true)
	o.take(true)
	if c := cap(o.bulk.filling) + cap(o.bulk.taken); c > keptBytes {
		t.Errorf("%d bytes are kept", c)
	}
}

func TestQuiet(t *testing.T) {
	q, at := &quiet{}, time.Now()
	allow := func(after time.Duration, r replica.Rank, text string) (int, bool) {
		at = at.Add(after)
		return q.allow(at, lineDial, r, text)
	}
	for i, step := range []struct {
		after   time.Duration
		r       replica.Rank
		text    string
		skipped int
		ok      bool
	}{
		{0, 1, "a", 0, true},
		{0, 1, "a", 0, false},
		{0, 2, "a", 0, true}, // another peer's
		{0, replica.Nobody, "a", 0, true},
		{500 * time.Millisecond, 1, "b", 0, false}, // too soon for any
		{500 * time.Millisecond, 1, "b", 2, true},
		{29 * time.Second, 1, "b", 0, false},
		{time.Second, 1, "b", 1, true},
	} {
		if skipped, ok := allow(step.after, step.r, step.text); skipped != step.skipped || ok != step.ok {
			t.Errorf("step %d: %d %v, want %d %v", i, skipped, ok, step.skipped, step.ok)
		}
	}
}
