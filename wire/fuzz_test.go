package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// seedVectors adds the golden frames of all files to a fuzzer's corpus; more
// seeds are in testdata/fuzz.
func seedVectors(f *testing.F, add func(frame []byte)) {
	for _, file := range []string{"requests.json", "replies.json", "malformed.json", "malformed_replies.json", "arguments.json"} {
		for _, v := range loadVectors(f, file) {
			add(v.Hex)
		}
	}
}

// checkVerdict checks what holds of decoding any bytes at all, cut anywhere.
func checkVerdict(t *testing.T, b []byte, at uint16, decode func([]byte) (int, error)) {
	n, err := decode(b)
	var fault *FrameError
	switch {
	case err != nil && (!errors.As(err, &fault) || n != 0 || fault.Detail == ""):
		t.Fatalf("Decode = %d, %v", n, err)
	case err != nil && len(fault.Key) > 0 && CheckKey(fault.Key) != nil:
		t.Fatalf("%v echoes the bad key %q", err, fault.Key)
	case err == nil && n != 0 && (n != frameEnd(b) || n > len(b) || n > 4+MaxFrameBytes):
		t.Fatalf("Decode = %d of %d bytes", n, len(b))
	case err == nil && n == 0 && len(b) >= 4+MaxFrameBytes:
		t.Fatalf("Decode waits for more than %d bytes", len(b))
	}
	if err != nil {
		answer := fault.Answer()
		checkReplyBack(t, &answer)
	}
	part := min(int(at), len(b))
	n2, err2 := decode(b[:part:part])
	if quiet := n2 == 0 && err2 == nil; !quiet && (n2 != n || !reflect.DeepEqual(err2, err)) || quiet && n > 0 && part >= n {
		t.Fatalf("Decode = %d, %v; of the first %d bytes %d, %v", n, err, part, n2, err2)
	}
}

func checkRequestBack(t *testing.T, q *Request) {
	frame := AppendRequest(nil, q)
	var r Request
	if n, err := r.Decode(frame); n != len(frame) || err != nil {
		t.Fatalf("%v: Decode = %d of %d, %v", q, n, len(frame), err)
	}
	if !reflect.DeepEqual(plainRequest(r), plainRequest(*q)) {
		t.Fatalf("%+v came back as %+v", q, r)
	}
}

func checkReplyBack(t *testing.T, p *Reply) {
	frame := AppendReply(nil, p)
	var r Reply
	if n, err := r.Decode(frame); n != len(frame) || err != nil {
		t.Fatalf("%v: Decode = %d of %d, %v", p, n, len(frame), err)
	}
	if !reflect.DeepEqual(plainReply(r), plainReply(*p)) {
		t.Fatalf("%+v came back as %+v", p, r)
	}
}

// Any bytes: a clear verdict, and what was understood says the same when sent on.
func FuzzRequestDecode(f *testing.F) {
	seedVectors(f, func(frame []byte) { f.Add(frame, uint16(20)) })
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		var r Request
		checkVerdict(t, b, at, r.Decode)
		if n, _ := r.Decode(b); n > 0 {
			checkRequestBack(t, &r)
			_ = r.String()
			if again := AppendRequest(nil, &r); !bytes.Equal(again[4:], b[4:len(again)]) {
				t.Fatalf("%x, sent on as %x", b[:n], again)
			}
		}
	})
}

func FuzzReplyDecode(f *testing.F) {
	seedVectors(f, func(frame []byte) { f.Add(frame, uint16(20)) })
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		var r Reply
		checkVerdict(t, b, at, r.Decode)
		if n, _ := r.Decode(b); n > 0 {
			checkReplyBack(t, &r)
			_ = r.String()
			if again := AppendReply(nil, &r); !bytes.Equal(again[4:], b[4:len(again)]) {
				t.Fatalf("%x, sent on as %x", b[:n], again)
			}
		}
	})
}

// Any request that passes Check and CheckKey can be sent, and arrives as it was.
func FuzzRequestRoundTrip(f *testing.F) {
	for _, v := range loadVectors(f, "requests.json") {
		r := v.Frame.request()
		f.Add(byte(r.Op), byte(r.Flags), r.ID, r.Key, r.Auth, r.Owner, r.Software, r.LeaseMS, r.WaitMS, r.Slots, r.Ticket[:], r.Token, r.Target)
	}
	f.Fuzz(func(t *testing.T, op, flags byte, id uint32, key, auth, owner, software []byte, lease, wait uint32, slots uint16, ticket []byte, token uint64, target uint32) {
		q := Request{Op: Op(op), Flags: Flags(flags), ID: id, Key: key}
		switch q.Op {
		case OpHello:
			q.Version, q.Auth, q.Owner, q.Software = Version, auth, owner, software
		case OpAcquire:
			q.LeaseMS, q.WaitMS, q.Slots = lease, wait, slots
			copy(q.Ticket[:], ticket)
		case OpRelease:
			q.Token = token
		case OpExtend:
			q.Token, q.LeaseMS = token, lease
		case OpCancel:
			q.Target = target
		}
		if q.Check() != nil || q.Op.takesKey() && CheckKey(key) != nil {
			return
		}
		checkRequestBack(t, &q)
	})
}

// Any reply the protocol has, with any texts, is a frame, and unless a text had
// to be cut it arrives as it was.
func FuzzReplyRoundTrip(f *testing.F) {
	for _, v := range loadVectors(f, "replies.json") {
		r := v.Frame.reply()
		f.Add(byte(r.Op), byte(r.Status), r.ID, r.Key, r.Token, r.LeaseMS, r.Waiters, byte(r.Reason), uint16(r.Code), r.Message, r.Addr, r.Software)
	}
	f.Fuzz(func(t *testing.T, op, status byte, id uint32, key []byte, token uint64, lease, number uint32, letter byte, code uint16, text1, text2, text3 []byte) {
		if CheckKey(key) != nil {
			key = nil
		}
		p := Reply{Op: Op(op), Status: Status(status), ID: id, Key: key}
		switch kindOf(p.Op, p.Status) {
		case kindUnknown:
			return
		case kindWelcome:
			p.Version, p.Role, p.Node, p.Addr, p.MaxKey = code, Role(letter), text1, text2, code
			p.DefaultLeaseMS, p.MaxLeaseMS, p.Software, p.ActiveNode = lease, number, text3, text1
		case kindGranted:
			p.Token, p.LeaseMS = token, lease
		case kindExtended:
			p.LeaseMS = lease
		case kindMoved, kindMovedPush:
			p.Addr, p.Node = text1, text2
		case kindError:
			p.Code, p.Message = Code(code), text1
		case kindLost:
			p.Token, p.Reason = token, Reason(letter)
		case kindContended:
			p.Token, p.Waiters = token, number
		}
		texts := len(p.Key) + len(p.Message) + len(p.Node) + len(p.Addr) + len(p.Software) + len(p.ActiveNode)
		if texts+welcomeBytes <= maxBodyBytes {
			checkReplyBack(t, &p)
			return
		}
		frame := AppendReply(nil, &p)
		if n, err := new(Reply).Decode(frame); n != len(frame) || err != nil {
			t.Fatalf("Decode = %d of %d, %v", n, len(frame), err)
		}
	})
}
