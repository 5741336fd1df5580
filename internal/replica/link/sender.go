package link

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/replica"
)

// pullBytes is how many bytes of events one pull asks for: two pieces, so that
// the owner is not asked for every few events and copies no more than that
// under its mutex.
const pullBytes = 2 * pieceBytes

// The byte that a WebSocket message begins with.
const (
	controlPiece = 1
	bulkPiece    = 2
)

// send is the link's sender: control first, then a piece of bulk, and so on;
// more bulk is pulled when all is gone. It ends with the link, or by ending it.
func (c *conn) send() {
	defer close(c.sent)
	defer c.raw.Close()
	var bulk []byte // of what was taken
	var pace pace
	for {
		w := c.out.take(len(bulk) == 0 && pace.due(c.t.cfg.Pace))
		var err error
		switch {
		case w.dead:
			return
		case w.control != nil:
			err = c.writeAll(w.control, w.by)
		case w.bulk != nil || len(bulk) > 0:
			if w.bulk != nil {
				bulk = w.bulk
				pace.sent(len(bulk))
			}
			n := min(len(bulk), pieceBytes)
			err = c.write(bulkPiece, bulk[:n], w.by)
			bulk = bulk[n:]
		case w.closing:
			c.farewell(w.why, w.by)
			return
		case w.pull:
			c.owner.Step(replica.Pull{Link: c.id, Max: pullBytes})
			c.out.pulled()
		default:
			pace.wait(c.out.wake)
		}
		if err != nil {
			c.out.fail(err)
			return
		}
	}
}

// pace spaces out bulk messages that are small: under load the events of a
// moment then travel together, for a tenth of the system calls on both sides. What
// comes after a pause goes at once, and so does what follows a large one, such as
// the pieces of a snapshot.
type pace struct {
	next  time.Time // not before; zero: at once
	timer *time.Timer
}

// sent notes that a message of so many bytes was taken.
func (p *pace) sent(bytes int) {
	p.next = time.Time{}
	if bytes < pieceBytes/4 {
		p.next = time.Now()
	}
}

// due says whether the next one may be taken, every being the space between two.
func (p *pace) due(every time.Duration) bool {
	left := every - time.Since(p.next)
	if p.next.IsZero() || left <= 0 {
		p.next = time.Time{}
		return true
	}
	if p.timer == nil {
		p.timer = time.NewTimer(left)
	} else {
		p.timer.Reset(left)
	}
	return false
}

// wait waits for something to do, or until the next message may be taken.
func (p *pace) wait(wake <-chan struct{}) {
	if p.next.IsZero() {
		<-wake
		return
	}
	select {
	case <-wake:
	case <-p.timer.C:
	}
}

func (c *conn) writeAll(control []byte, by time.Time) error {
	for len(control) > 0 {
		n := min(len(control), pieceBytes)
		if err := c.write(controlPiece, control[:n], by); err != nil {
			return err
		}
		control = control[n:]
	}
	return nil
}

// write writes one WebSocket message within Config.Timeout; a link that closes
// does not get new time for each.
func (c *conn) write(kind byte, piece []byte, by time.Time) error {
	if by.IsZero() {
		by = time.Now().Add(c.timeout)
	}
	c.piece = append(append(c.piece[:0], kind), piece...)
	c.raw.SetWriteDeadline(by)
	if err := c.ws.Write(context.Background(), websocket.MessageBinary, c.piece); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// farewell tells the peer why the link ends, and waits for its goodbye: were
// the socket closed with something of the peer's unread, the kernel would reset
// it and might take back what was said last.
func (c *conn) farewell(why string, by time.Time) {
	c.raw.SetDeadline(by)
	c.ws.Close(websocket.StatusNormalClosure, reason(why))
}

// reason cuts a text to what a close frame holds.
func reason(text string) string {
	const most = 123
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
