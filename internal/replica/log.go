package replica

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// eventHead is the size of the length that stands before each event, u32
// big-endian. It is fixed so that whoever encodes can leave room for it and
// fill it in afterwards.
const eventHead = 4

// AppendEvent appends one encoded event to a run of events.
func AppendEvent(run, event []byte) []byte {
	run = binary.BigEndian.AppendUint32(run, uint32(len(event)))
	return append(run, event...)
}

// NextEvent takes the first event off a run. ok is false at its end and where
// the run is broken.
func NextEvent(run []byte) (event, rest []byte, ok bool) {
	if len(run) < eventHead {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(run))
	if n > uint64(len(run)-eventHead) {
		return nil, nil, false
	}
	end := eventHead + int(n)
	return run[eventHead:end:end], run[end:], true
}

// countEvents says how many events a run has, and whether it is whole.
func countEvents(run []byte) (n int, ok bool) {
	for len(run) > 0 {
		if _, run, ok = NextEvent(run); !ok {
			return n, false
		}
		n++
	}
	return n, true
}

// eventLog holds the encoded events of the last reigns, once for all peers: a
// ring of bytes, exactly as they are sent, from which every stream copies at
// its own pace. When it is full the oldest events go; whose cursor they were
// needs a snapshot.
type eventLog struct {
	buf   []byte // length is a power of two
	tail  cursor // the oldest event kept
	head  cursor // where the next one goes
	reign []logReign
	marks []cursor // of every markEvery-th event kept, so that a position is found without a walk from the tail
}

// cursor is a place in the log: the event's index over all reigns, and its byte.
type cursor struct {
	index int64
	at    uint64
}

// logReign is a run of events of one reign. Event seq has index start + seq - 1.
type logReign struct {
	epoch   Epoch
	start   int64
	lineage Lineage
}

const markEvery = 256

func newEventLog(bytes int) eventLog {
	size := 1 << 10
	for size < bytes {
		size <<= 1
	}
	return eventLog{buf: make([]byte, size)}
}

// reset forgets everything: the next event follows position p.
func (l *eventLog) reset(p Position, lineage Lineage) {
	l.tail, l.marks = l.head, l.marks[:0]
	l.reign = append(l.reign[:0], logReign{p.Epoch, l.head.index - int64(p.Seq), lineage})
}

// open begins a new reign after the last event.
func (l *eventLog) open(e Epoch, lineage Lineage) {
	l.reign = append(l.reign, logReign{e, l.head.index, lineage})
	l.dropReigns()
}

// append adds a run of events. It returns how many those are, and false, with
// nothing changed, if the run is broken. One that is larger than the log
// leaves it empty: whoever lags needs a snapshot.
func (l *eventLog) append(run []byte) (int, bool) {
	n, ok := countEvents(run)
	if !ok {
		return 0, false
	}
	if len(run) > len(l.buf) {
		l.head = cursor{l.head.index + int64(n), l.head.at}
		l.tail, l.marks = l.head, l.marks[:0]
		l.dropReigns()
		return n, true
	}
	for l.head.at+uint64(len(run))-l.tail.at > uint64(len(l.buf)) {
		l.drop()
	}
	l.copyIn(run)
	for len(run) > 0 {
		if l.head.index%markEvery == 0 {
			l.marks = append(l.marks, l.head)
		}
		size := eventHead + uint64(binary.BigEndian.Uint32(run))
		l.head = cursor{l.head.index + 1, l.head.at + size}
		run = run[size:]
	}
	l.dropReigns()
	l.dropMarks()
	return n, true
}

// drop lets the oldest events go, up to the next mark: to find the end of each
// would mean to read memory that has long left the caches, a miss for every
// event that comes.
func (l *eventLog) drop() {
	i := sort.Search(len(l.marks), func(i int) bool { return l.marks[i].index > l.tail.index })
	if i < len(l.marks) {
		l.tail = l.marks[i]
		return
	}
	l.tail = l.after(l.tail)
}

func (l *eventLog) copyIn(run []byte) {
	at := l.head.at & uint64(len(l.buf)-1)
	n := copy(l.buf[at:], run)
	copy(l.buf, run[n:])
}

// after returns the place of the event that follows the one at c.
func (l *eventLog) after(c cursor) cursor {
	return cursor{c.index + 1, c.at + l.sizeAt(c.at)}
}

func (l *eventLog) sizeAt(at uint64) uint64 {
	if at &= uint64(len(l.buf) - 1); at+eventHead <= uint64(len(l.buf)) {
		return eventHead + uint64(binary.BigEndian.Uint32(l.buf[at:]))
	}
	var head [eventHead]byte
	copy(head[copy(head[:], l.buf[at:]):], l.buf)
	return eventHead + uint64(binary.BigEndian.Uint32(head[:]))
}

// dropReigns forgets the reigns that ended before the tail, but the last.
func (l *eventLog) dropReigns() {
	n := 0
	for n+1 < len(l.reign) && l.reign[n+1].start < l.tail.index {
		n++
	}
	l.reign = l.reign[:copy(l.reign, l.reign[n:])]
}

func (l *eventLog) dropMarks() {
	n := 0
	for n < len(l.marks) && l.marks[n].index < l.tail.index {
		n++
	}
	if n > len(l.marks)/2 {
		l.marks = l.marks[:copy(l.marks, l.marks[n:])]
	}
}

// find returns the place of the event that follows position p; false where p
// is no position of this log, or lies before its tail.
func (l *eventLog) find(p Position) (cursor, bool) {
	for i := len(l.reign) - 1; i >= 0; i-- {
		if l.reign[i].epoch != p.Epoch {
			continue
		}
		if p.Seq > Seq(l.end(i)-l.reign[i].start) {
			return cursor{}, false
		}
		return l.locate(l.reign[i].start + int64(p.Seq))
	}
	return cursor{}, false
}

// end is the index of the first event after reign i.
func (l *eventLog) end(i int) int64 {
	if i+1 < len(l.reign) {
		return l.reign[i+1].start
	}
	return l.head.index
}

func (l *eventLog) locate(index int64) (cursor, bool) {
	if index < l.tail.index || index > l.head.index {
		return cursor{}, false
	}
	if index == l.head.index {
		return l.head, true
	}
	c := l.tail
	lo, hi := 0, len(l.marks)
	for lo < hi {
		if mid := (lo + hi) / 2; l.marks[mid].index <= index {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 && l.marks[lo-1].index > c.index {
		c = l.marks[lo-1]
	}
	for c.index < index {
		c = l.after(c)
	}
	return c, true
}

// piece is a run of events of one reign.
type piece struct {
	epoch   Epoch
	first   Seq
	prev    Position // first is 1: what the reign followed
	lineage Lineage  // first is 1: of the reign
	events  []byte
}

// read appends to dst events from c on, before index upto, all of one reign: as
// many as fit into max bytes, one at least. ok is false if c fell out of the
// log. At its head the piece is empty.
func (l *eventLog) read(c cursor, upto int64, max int, dst []byte) (p piece, next cursor, ok bool) {
	if c.index < l.tail.index {
		return piece{}, c, false
	}
	if c.index > l.head.index {
		panic(fmt.Sprintf("replica: log read at event %d, its head is %d", c.index, l.head.index))
	}
	if c.index >= min(upto, l.head.index) {
		return piece{}, c, true
	}
	i := len(l.reign) - 1
	for l.reign[i].start > c.index {
		i--
	}
	p.epoch, p.first = l.reign[i].epoch, Seq(c.index-l.reign[i].start+1)
	if p.first == 1 {
		p.lineage = l.reign[i].lineage
		if i > 0 {
			p.prev = Position{l.reign[i-1].epoch, Seq(l.reign[i].start - l.reign[i-1].start)}
		}
	}
	next = c
	for next.index < min(upto, l.end(i)) {
		after := l.after(next)
		if next != c && after.at-c.at > uint64(max) {
			break
		}
		next = after
	}
	p.events = l.copyOut(dst, c.at, next.at)
	return p, next, true
}

func (l *eventLog) copyOut(dst []byte, from, to uint64) []byte {
	at, size := from&uint64(len(l.buf)-1), to-from
	n := min(size, uint64(len(l.buf))-at)
	dst = append(dst, l.buf[at:at+n]...)
	return append(dst, l.buf[:size-n]...)
}
