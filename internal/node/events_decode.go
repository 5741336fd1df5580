package node

import (
	"encoding/binary"
	"errors"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/replica"
)

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
