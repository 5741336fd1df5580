package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/internal/replica"
)

// controlLimit bounds the control that waits to be sent: some thousand
// heartbeats, minutes of them.
const controlLimit = 256 << 10

// bulkLimit bounds the bulk that waits to be sent, but for a single message,
// which may be of the longest: the next one is only pulled when it is gone.
const bulkLimit = 4<<20 + 64<<10

var errControlFull = errors.New("the peer does not take the control messages that wait for it")

// outbox is what waits to be sent on a link. Whoever puts something in never
// waits; the sender is the only one to take.
type outbox struct {
	wake chan struct{} // one slot

	mu      sync.Mutex // guards what follows
	control lane
	bulk    lane
	pull    bool      // the owner has bulk, or may have
	closing bool      // nothing more is taken in: what is here goes out, then a farewell
	closeBy time.Time // closing: when the peer must have taken it all
	why     string    // closing
	dead    error     // nothing more goes out; nil while the link stands
}

// lane is a stream of messages with their lengths, in two buffers: the one that
// is filled, and the one that the sender has.
type lane struct{ filling, taken []byte }

// take hands out what was filled in; what it handed out before is used again.
func (l *lane) take() []byte {
	l.taken = recycle(l.taken)
	if len(l.filling) == 0 {
		return nil
	}
	l.filling, l.taken = l.taken, l.filling
	return l.taken
}

func newOutbox() outbox { return outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// send takes in a message. What does not fit ends the link.
func (o *outbox) send(on replica.Lane, msg replica.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing || o.dead != nil {
		return
	}
	l, most, limit := &o.control, maxControlBytes, controlLimit
	if on == replica.Bulk {
		l, most, limit = &o.bulk, maxBulkBytes, bulkLimit
	}
	start := len(l.filling)
	l.filling = append(l.filling, make([]byte, lengthBytes)...)
	l.filling = replica.AppendMessage(l.filling, msg)
	size := len(l.filling) - start - lengthBytes
	binary.BigEndian.PutUint32(l.filling[start:], uint32(size))
	switch {
	case size > most:
		o.failLocked(fmt.Errorf("a message of kind %d has %d bytes; at most %d", msg.Kind(), size, most))
	case len(l.filling) > limit && on == replica.Control:
		o.failLocked(errControlFull)
	case len(l.filling) > limit && start > 0:
		o.failLocked(errors.New("bulk that was not pulled"))
	}
	o.signal()
}

// wakeUp says that a pull would yield something.
func (o *outbox) wakeUp() {
	o.mu.Lock()
	o.pull = true
	o.mu.Unlock()
	o.signal()
}

// pulled is called after each pull: one that yielded something is followed by another.
func (o *outbox) pulled() {
	o.mu.Lock()
	o.pull = o.pull || len(o.bulk.filling) > 0
	o.mu.Unlock()
}

// close lets what is here go out, until by, and says why as the last thing.
func (o *outbox) close(why string, by time.Time) {
	o.mu.Lock()
	if !o.closing {
		o.closing, o.why, o.closeBy = true, why, by
	}
	o.mu.Unlock()
	o.signal()
}

// fail ends the link at once: nothing more goes out.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	o.failLocked(err)
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) failLocked(err error) {
	if o.dead == nil {
		if o.dead = err; o.closing {
			o.dead = errors.New(o.why)
		}
		o.control, o.bulk = lane{}, lane{}
	}
}

// cause is why the link ended: the first reason given.
func (o *outbox) cause() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dead
}

// work is the sender's next: one of its fields is set, or none and there is nothing to do.
type work struct {
	dead    bool
	control []byte // lent until the next take
	bulk    []byte // lent until the take that asks for more
	pull    bool
	closing bool
	why     string
	by      time.Time // zero: none but the usual
}

// take says what to do next. Bulk is only handed out when more is asked for.
func (o *outbox) take(more bool) (w work) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead != nil {
		return work{dead: true}
	}
	w.by = o.closeBy
	if w.control = o.control.take(); w.control != nil || !more {
		return w
	}
	if w.bulk = o.bulk.take(); w.bulk != nil {
		return w
	}
	if o.closing {
		w.closing, w.why = true, o.why
		return w
	}
	w.pull, o.pull = o.pull, false
	return w
}
