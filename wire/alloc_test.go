package wire

import (
	"strings"
	"testing"
)

func mustNotAllocate(t *testing.T, what string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want 0", what, n)
	}
}

func TestRequestsDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4+MaxFrameBytes)
	for _, v := range loadVectors(t, "requests.json") {
		q := v.Frame.request()
		var r Request
		mustNotAllocate(t, v.Name, func() {
			buf = AppendRequest(buf[:0], q)
			if _, err := r.Decode(v.Hex); err != nil {
				t.Fatal(err)
			}
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
			r.Decode(v.Hex[:len(v.Hex)-1])
		})
	}
}

func TestRepliesDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4+MaxFrameBytes)
	for _, v := range loadVectors(t, "replies.json") {
		p := v.Frame.reply()
		var r Reply
		mustNotAllocate(t, v.Name, func() {
			buf = AppendReply(buf[:0], p)
			if _, err := r.Decode(v.Hex); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestCheckKeyDoesNotCopyAString(t *testing.T) {
	key := strings.Repeat("k", MaxKeyBytes)
	mustNotAllocate(t, "CheckKey", func() {
		if err := CheckKey([]byte(key)); err != nil {
			t.Fatal(err)
		}
	})
}
