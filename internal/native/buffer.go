package native

import "sync"

// bufferBytes is the room of one buffer: at least one frame of the largest
// size, and with its header one allocation of 16 KiB.
const bufferBytes = 16<<10 - 96

// buffer holds bytes on their way in or out. A connection has one only while
// there are bytes in it, which is what the pool is for: otherwise an idle
// connection would hold 16 KB beside the 4 KB that it takes in all, or every
// request pay for a new buffer, a thousand times what the pool takes
// (BenchmarkIdleConnection; 100 µs instead of 0.1 on a busy machine, most of it
// for the collector).
type buffer struct {
	next *buffer // output: the one after it

	start, end int // the bytes in use
	counted    int // output: how many of the bytes count towards OutputLimit
	late       int // output: answers that fell due on their own
	writing    int // output: bytes that are being written

	n   int // of the last read or write without waiting
	err error

	b [bufferBytes]byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

func giveBuffer(b *buffer) {
	b.next, b.start, b.end, b.counted, b.late, b.err = nil, 0, 0, 0, 0, nil
	buffers.Put(b)
}

func (b *buffer) bytes() []byte { return b.b[b.start:b.end] }

func (b *buffer) room() int { return bufferBytes - b.end }
