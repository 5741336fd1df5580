package wire

import "testing"

var benchRequest = Request{
	Op: OpAcquire, ID: 7, Key: []byte("orders/000012345"), LeaseMS: 30_000, WaitMS: 5_000,
	Ticket: Ticket{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
}

var benchReply = Reply{Op: OpAcquire, Status: StatusGranted, ID: 7, Key: []byte("orders/000012345"), Token: 1 << 52, LeaseMS: 30_000}

func BenchmarkAppendAcquire(b *testing.B) {
	buf := make([]byte, 0, 4+MaxFrameBytes)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendRequest(buf[:0], &benchRequest)
	}
}

func BenchmarkDecodeAcquire(b *testing.B) {
	frame := AppendRequest(nil, &benchRequest)
	var r Request
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.Decode(frame); n != len(frame) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkCheckAcquire(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := benchRequest.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendGranted(b *testing.B) {
	buf := make([]byte, 0, 4+MaxFrameBytes)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendReply(buf[:0], &benchReply)
	}
}

func BenchmarkDecodeGranted(b *testing.B) {
	frame := AppendReply(nil, &benchReply)
	var r Reply
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.Decode(frame); n != len(frame) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkKeyText(b *testing.B) {
	for _, key := range []string{"jobs", "orders/000012345", "aufträge/münchen/7", "a-key-that-is-sixty-four-bytes-long-for-those-who-like-long-keys"} {
		b.Run(key[:4], func(b *testing.B) {
			k := []byte(key)
			for b.Loop() {
				if !isText(k) {
					b.Fatal(key)
				}
			}
		})
	}
}
