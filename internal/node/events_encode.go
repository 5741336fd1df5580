package node

import (
	"encoding/binary"
	"slices"
	"time"

	"holdfast/internal/locks"
)

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
