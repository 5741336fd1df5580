package fakeserver

import (
	"sync"

	"holdfast/wire"
)

// outbox is the replies of one connection that are not written yet, however
// many. Replies are sent with the table's mutex held, and the writer takes that
// mutex too: if sending could wait for the writer, the two would wait for each
// other, and a bubble's clock stands still while anybody waits for a mutex.
type outbox struct {
	filled chan struct{} // one slot: there may be something to take

	mu    sync.Mutex // guards what follows; after Table.mu
	items []timed[wire.Reply]
}

func (o *outbox) put(t timed[wire.Reply]) {
	o.mu.Lock()
	o.items = append(o.items, t)
	o.mu.Unlock()
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// take waits for the next reply; false means that gone was closed.
func (o *outbox) take(gone <-chan struct{}) (t timed[wire.Reply], ok bool) {
	for {
		select {
		case <-gone:
			return t, false
		default:
		}
		if t, ok = o.first(); ok {
			return t, true
		}
		select {
		case <-o.filled:
		case <-gone:
		}
	}
}

func (o *outbox) first() (t timed[wire.Reply], ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.items) == 0 {
		return t, false
	}
	t = o.items[0]
	o.items = o.items[1:]
	return t, true
}
