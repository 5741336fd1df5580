package node

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

// What a locks.Event is between nodes. After the length that replica.NextEvent
// takes off: a byte for the kind, a byte for the flags (those of locks.Flags
// that last; noTicket, sameKey, sameOrigin), then the kind's fields:
//
//	epoch    token
//	grant    key token lease slots ticket origin
//	extend   key token lease
//	end      key token reason
//	enqueue  key lease wait slots ticket origin
//	dequeue  key ticket reason
//	clear    -
//	reset    key
//	ended    token index
//	trim     index
//
// Numbers are uvarints, durations in microseconds rounded down, so that no
// lease grows on its way. A text is its length and its bytes; an origin is
// owner, remote and identity, then a byte for the transport (0: a text follows);
// a ticket is 16 bytes, left out with noTicket. In a piece of a snapshot, which travels whole, an
// event with the same key or origin as the one before says so with the flag and
// leaves the field out: a queue of 100,000 then takes 30 bytes a place. In the
// stream every event stands for itself, for the log is cut anywhere.
//
// Bytes after the known fields are ignored, and so is an event of an unknown
// kind: a later version may send both.
const (
	noTicket   = 1 << 0 // locks.Try, which does not last
	sameKey    = 1 << 6
	sameOrigin = 1 << 7
	lasting    = byte(locks.Shared | locks.Bound | locks.Contended)
)

// transports have a number each, so that most origins are shorter.
var transports = [...]string{1: "native", 2: "http", 3: "ws"}

// encoder appends events to a run.
type encoder struct {
	whole  bool // the run travels whole: see sameKey
	run    []byte
	key    []byte        // of the last event, in run
	origin *locks.Origin // of the last event that has one; nil: none
	packed []byte        // the last origin, encoded
	of     *locks.Origin // what packed is of
}

// begin starts a new run in the memory of the last one.
func (e *encoder) begin() {
	if cap(e.run) > 1<<20 {
		e.run = nil // one storm is no reason to keep its memory
	}
	e.run, e.key, e.origin = e.run[:0], nil, nil
}

// add appends one event.
func (e *encoder) add(ev *locks.Event) {
	const head = 4 // the length, see replica.AppendEvent
	at := len(e.run)
	b := append(e.run, 0, 0, 0, 0, byte(ev.Kind), byte(ev.Flags)&lasting)
	flags := &b[at+head+1]
	keyed, originated := hasKey(ev.Kind), ev.Kind == locks.EventGrant || ev.Kind == locks.EventEnqueue
	if e.whole && keyed && e.key != nil && string(e.key) == string(ev.Key) {
		*flags |= sameKey
		keyed = false
	}
	if e.whole && originated && e.origin == ev.Origin && e.origin != nil {
		*flags |= sameOrigin
		originated = false
	}
	if ev.Ticket.IsZero() {
		*flags |= noTicket
	}
	if keyed {
		b = binary.AppendUvarint(b, uint64(len(ev.Key)))
		start := len(b)
		b = append(b, ev.Key...)
		e.key = b[start:len(b):len(b)] // good even if b moves: the old bytes stay
	}
	b = appendFields(b, ev)
	if originated {
		b = e.appendOrigin(b, ev.Origin)
		e.origin = ev.Origin
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-head))
	e.run = b
}

func (e *encoder) addAll(events []locks.Event) {
	for i := range events {
		e.add(&events[i])
	}
}

func hasKey(k locks.EventKind) bool {
	switch k {
	case locks.EventGrant, locks.EventExtend, locks.EventEnd, locks.EventEnqueue, locks.EventDequeue, locks.EventReset:
		return true
	}
	return false
}

// appendFields appends what stands between the key and the origin.
func appendFields(b []byte, ev *locks.Event) []byte {
	switch ev.Kind {
	case locks.EventEpoch:
		b = binary.AppendUvarint(b, uint64(ev.Token))
	case locks.EventGrant:
		b = binary.AppendUvarint(b, uint64(ev.Token))
		b = appendSpan(b, ev.Lease)
		b = binary.AppendUvarint(b, uint64(ev.Slots))
		b = appendTicket(b, ev)
	case locks.EventExtend:
		b = binary.AppendUvarint(b, uint64(ev.Token))
		b = appendSpan(b, ev.Lease)
	case locks.EventEnd:
		b = binary.AppendUvarint(b, uint64(ev.Token))
		b = append(b, byte(ev.Reason))
	case locks.EventEnqueue:
		b = appendSpan(b, ev.Lease)
		b = appendWait(b, ev.Wait)
		b = binary.AppendUvarint(b, uint64(ev.Slots))
		b = appendTicket(b, ev)
	case locks.EventDequeue:
		b = appendTicket(b, ev)
		b = append(b, byte(ev.Reason))
	case locks.EventEnded:
		b = binary.AppendUvarint(b, uint64(ev.Token))
		b = binary.AppendUvarint(b, ev.Index)
	case locks.EventClear, locks.EventTrim:
		b = binary.AppendUvarint(b, ev.Index)
	}
	return b
}

func appendTicket(b []byte, ev *locks.Event) []byte {
	if ev.Ticket.IsZero() {
		return b
	}
	return append(b, ev.Ticket[:]...)
}

func appendSpan(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64(max(d, 0)/time.Microsecond))
}

// appendWait keeps a wait that is nearly over from being one without bound.
func appendWait(b []byte, d time.Duration) []byte {
	if d > 0 && d < time.Microsecond {
		d = time.Microsecond
	}
	return appendSpan(b, d)
}

// appendOrigin appends an origin. They come again and again, by the same
// pointer, so the last one is kept as it is sent.
func (e *encoder) appendOrigin(b []byte, o *locks.Origin) []byte {
	if o == nil {
		return append(b, 0, 0, 0, 0, 0)
	}
	if e.of != o {
		e.of, e.packed = o, e.packed[:0]
		for _, text := range [...]string{o.Owner, o.Remote, o.Identity} {
			e.packed = appendText(e.packed, text)
		}
		i := max(slices.Index(transports[:], o.Transport), 0)
		if e.packed = append(e.packed, byte(i)); i == 0 {
			e.packed = appendText(e.packed, o.Transport)
		}
	}
	return append(b, e.packed...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decoder reads a run. The events' keys point into the run; origins are the
// decoder's own, one for each that differs from the last.
type decoder struct {
	key    []byte
	origin *locks.Origin
	packed []byte      // the origin as it was read
	ev     locks.Event // the one at hand
}

var errEvent = errors.New("an event that is cut short")

// begin starts a new run: what the last one said is not referred to.
func (d *decoder) begin() { d.key = nil }

// read decodes one event. ok is false for one of an unknown kind.
func (d *decoder) read(b []byte, ev *locks.Event) (ok bool, err error) {
	if len(b) < 2 {
		return false, errEvent
	}
	f := fields{b: b[2:], noTicket: b[1]&noTicket != 0}
	*ev = locks.Event{Kind: locks.EventKind(b[0]), Flags: locks.Flags(b[1] & lasting)}
	if hasKey(ev.Kind) {
		if b[1]&sameKey == 0 {
			d.key = f.text()
		}
		ev.Key = d.key
	}
	if ok = f.read(ev); !ok {
		return false, nil
	}
	if ev.Kind == locks.EventGrant || ev.Kind == locks.EventEnqueue {
		if b[1]&sameOrigin == 0 {
			d.takeOrigin(&f)
		}
		ev.Origin = d.origin
	}
	if f.short {
		return false, errEvent
	}
	return true, nil
}

// takeOrigin reads an origin, and keeps the last one if it is the same.
func (d *decoder) takeOrigin(f *fields) {
	start := f.b
	var texts [3][]byte
	for i := range texts {
		texts[i] = f.text()
	}
	transport := f.transport()
	packed := start[:len(start)-len(f.b)]
	if f.short || d.origin != nil && string(packed) == string(d.packed) {
		return
	}
	d.packed = append(d.packed[:0], packed...)
	d.origin = &locks.Origin{
		Owner: string(texts[0]), Remote: string(texts[1]), Transport: transport, Identity: string(texts[2]),
	}
}

// fields reads the fields of one event. Once something is missing, short is
// set and all that follows is zero.
type fields struct {
	b        []byte
	noTicket bool
	short    bool
}

func (f *fields) read(ev *locks.Event) (known bool) {
	switch ev.Kind {
	case locks.EventEpoch:
		ev.Token = f.token()
	case locks.EventGrant:
		ev.Token, ev.Lease, ev.Slots = f.token(), f.span(), f.small()
		f.ticket(&ev.Ticket)
	case locks.EventExtend:
		ev.Token, ev.Lease = f.token(), f.span()
	case locks.EventEnd:
		ev.Token, ev.Reason = f.token(), f.reason()
	case locks.EventEnqueue:
		ev.Lease, ev.Wait, ev.Slots = f.span(), f.span(), f.small()
		f.ticket(&ev.Ticket)
	case locks.EventDequeue:
		f.ticket(&ev.Ticket)
		ev.Reason = f.reason()
	case locks.EventEnded:
		ev.Token, ev.Index = f.token(), f.number()
	case locks.EventClear, locks.EventTrim:
		ev.Index = f.number()
	case locks.EventReset:
	default:
		return false
	}
	return true
}

func (f *fields) bytes(n int) []byte {
	if n > len(f.b) {
		f.b, f.short = nil, true
		return nil
	}
	p := f.b[:n:n]
	f.b = f.b[n:]
	return p
}

func (f *fields) ticket(t *locks.Ticket) {
	if !f.noTicket {
		copy(t[:], f.bytes(len(t)))
	}
}

func (f *fields) transport() string {
	i := f.bytes(1)
	switch {
	case i == nil || int(i[0]) >= len(transports):
		f.short = true
		return ""
	case i[0] == 0:
		return string(f.text())
	}
	return transports[i[0]]
}

func (f *fields) number() uint64 {
	n, size := binary.Uvarint(f.b)
	if size <= 0 {
		f.b, f.short = nil, true
		return 0
	}
	f.b = f.b[size:]
	return n
}

// token reads a token. One that no clock has come to is no token.
func (f *fields) token() locks.Token {
	n := f.number()
	f.short = f.short || n >= replica.MaxHeard
	return locks.Token(n)
}

func (f *fields) text() []byte {
	n := f.number()
	if n > uint64(len(f.b)) {
		f.b, f.short = nil, true
		return nil
	}
	return f.bytes(int(n))
}

// span reads a duration. What no lease can be is cut to what fits.
func (f *fields) span() time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	return time.Duration(min(f.number(), most)) * time.Microsecond
}

func (f *fields) small() uint16 {
	n := f.number()
	f.short = f.short || n > 1<<16-1
	return uint16(n)
}

func (f *fields) reason() locks.Reason {
	b := f.bytes(1)
	if b == nil {
		return 0
	}
	return locks.Reason(b[0])
}

// eachEvent decodes a run and calls fn for each event of it. It returns how
// many there are that could not be read: the peer's fault, or a later version's.
func (d *decoder) eachEvent(run []byte, fn func(*locks.Event)) (unread int) {
	d.begin()
	ev := &d.ev
	for {
		b, rest, ok := replica.NextEvent(run)
		if !ok {
			return unread
		}
		run = rest
		if ok, err := d.read(b, ev); err != nil || !ok {
			unread++
			continue
		}
		fn(ev)
	}
}
