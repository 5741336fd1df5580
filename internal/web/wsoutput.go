package web

import (
	"context"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/locks"
)

// wsItem is one message that was not written yet. A reply is put into words only
// as it goes out: what it says of the time must be true then, and the node's
// mutex must not be held for it.
type wsItem struct {
	text  []byte // nil: the reply
	reply locks.Reply
	at    locks.Time // when the reply was made
	late  bool       // the answer of an acquire that had to queue: it counts as pending, not towards Config.OutputLimit
}

// wsOverhead is about what a message has besides its key.
const wsOverhead = 256

func (i *wsItem) size() int {
	if i.late {
		return 0
	}
	return len(i.text) + len(i.reply.Key) + wsOverhead
}

// wsOutput is the writing side of a socket, guarded by socket.mu.
type wsOutput struct {
	items   []wsItem
	writing []wsItem // what the writer has taken and not written
	bytes   int      // of items, by their size
	late    int      // of items and writing
}

// add appends an item.
func (o *wsOutput) add(i wsItem) {
	o.items = append(o.items, i)
	o.bytes += i.size()
	if i.late {
		o.late++
	}
}

// begin gives the writer what there is to write.
func (o *wsOutput) begin() []wsItem {
	o.writing, o.items = o.items, nil
	return o.writing
}

// wrote notes that the first of what is being written is with the operating system.
func (o *wsOutput) wrote() {
	o.bytes -= o.writing[0].size()
	if o.writing[0].late {
		o.late--
	}
	o.writing[0] = wsItem{}
	o.writing = o.writing[1:]
}

// unsentGrants returns the grants that did not get out.
func (o *wsOutput) unsentGrants() (lost []locks.Reply) {
	for _, list := range [][]wsItem{o.writing, o.items} {
		for _, i := range list {
			if i.text == nil && i.reply.Op == locks.OpAcquire && i.reply.Code == locks.Granted {
				lost = append(lost, i.reply)
			}
		}
	}
	return lost
}

// Push takes a reply or a push of the node's, under the node's mutex.
func (c *socket) Push(r *locks.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item := wsItem{at: c.srv.node.Now()}
	switch {
	case r.Code == locks.Moved:
		c.movedLocked()
		return
	case r.Op == 0 && c.laggingLocked():
		return
	case r.Op == locks.OpCancel:
		item.text = c.cancelledLocked(r)
	case r.Op == locks.OpAcquire && r.Code == locks.Queued:
		if item.text = c.queuedLocked(r); item.text == nil {
			return
		}
	case r.Op == locks.OpAcquire:
		p := c.pending[r.Ref]
		item.late = p != nil && p.queued
		delete(c.pending, r.Ref)
	}
	if item.text == nil {
		item.reply = *r
		item.reply.Key = append([]byte(nil), r.Key...)
	}
	c.addLocked(item)
}

func (c *socket) addLocked(i wsItem) {
	if c.out.add(i); c.out.bytes > c.srv.cfg.OutputLimit {
		c.endLocked(wsTooSlow, wsTooSlow.String())
	}
}

// laggingLocked says whether the client is so slow that it gets no advice any
// more: it is not cut off over that.
func (c *socket) laggingLocked() bool { return c.out.bytes > c.srv.cfg.OutputLimit/2 }

// movedLocked sends the client to another node, once.
func (c *socket) movedLocked() {
	if c.why != wsGoesOn {
		return
	}
	c.out.add(wsItem{reply: locks.Reply{Code: locks.Moved}})
	c.endLocked(wsMoved, wsMoved.String())
}

// say sends a message that is not one of the node's.
func (c *socket) say(body any) {
	text := wsText(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(wsItem{text: text})
	c.Flush()
}

// write is the writer: it alone writes answers, and says goodbye.
func (c *socket) write() {
	defer c.sayGoodbye()
	beat := time.NewTicker(wsBeat)
	defer beat.Stop()
	places := newPlaceTimer()
	defer places.timer.Stop()
	for {
		why := c.ending()
		if why != wsGoesOn && !wsEndings[why].flush || !c.writeAll() || why != wsGoesOn {
			return
		}
		places.arm(c)
		select {
		case <-c.wake:
		case <-beat.C:
			c.say(wsPush{"hb"})
		case <-places.timer.C:
			places.tell(c)
		}
	}
}

// writeAll writes what there is. It reports whether the connection stands.
func (c *socket) writeAll() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		items := c.out.begin()
		if len(items) == 0 {
			return true
		}
		for i := range items {
			c.mu.Unlock()
			err := c.ws.Write(context.Background(), websocket.MessageText, c.words(&items[i]))
			c.mu.Lock()
			if err != nil {
				c.endLocked(wsGone, wsGone.String())
				return false
			}
			c.out.wrote()
		}
	}
}

// sayGoodbye closes the connection with the code that says why.
func (c *socket) sayGoodbye() {
	c.mu.Lock()
	why, reason := c.why, c.reason
	c.mu.Unlock()
	code := wsEndings[why].code
	if code == 0 {
		return // the killer has closed it
	}
	if why == wsMoved && c.srv.stops() {
		code = websocket.StatusServiceRestart
	}
	c.ws.Close(code, shorten(reason, wsMaxReason))
}

// wsMaxReason is how long the reason of a close may be, by the protocol.
const wsMaxReason = 123
