package web

import "time"

const (
	// placesAtOnce bounds the waiters of one socket whose place is looked up under
	// one hold of the node's mutex; where there are more, it is some of them each time.
	placesAtOnce = 256

	// A socket that waits asks again after placesSoonest, and where nothing has
	// moved after twice that, and so on up to placesLatest.
	placesSoonest = 250 * time.Millisecond
	placesLatest  = 2 * time.Second
)

// placeTimer tells waiters their place in line, as it changes. It is the
// writer's, and costs nothing while nobody waits.
type placeTimer struct {
	timer *time.Timer
	armed bool
	pause time.Duration

	ids    []uint64
	places []uint32
}

func newPlaceTimer() *placeTimer {
	p := &placeTimer{timer: time.NewTimer(time.Hour), pause: placesSoonest}
	p.timer.Stop()
	return p
}

// arm starts the timer if somebody waits.
func (p *placeTimer) arm(c *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.armed && len(c.pending) > 0 {
		p.armed = true
		p.timer.Reset(p.pause)
	}
}

// tell looks up where waiters stand, and tells those who have moved.
func (p *placeTimer) tell(c *socket) {
	p.armed = false
	p.ids, p.places = c.waiting(p.ids[:0]), p.places[:0]
	if len(p.ids) == 0 {
		p.pause = placesSoonest
		return
	}
	p.places = c.sess.Places(p.ids, p.places)
	p.pause = min(2*p.pause, placesLatest)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, id := range p.ids {
		w, place := c.pending[id], p.places[i]
		if w == nil || place == 0 || place == w.place || c.laggingLocked() {
			continue // answered meanwhile; no news; advice is dropped
		}
		w.place = place
		c.addLocked(wsItem{text: wsText(wsPositionPush{"position", id, place})})
		p.pause = placesSoonest
	}
}

// waiting appends to ids some acquires that wait in line. If there are any, the
// session is there.
func (c *socket) waiting(ids []uint64) []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range c.pending { // in no order: all have their turn
		if len(ids) == placesAtOnce {
			break
		}
		if w.queued {
			ids = append(ids, id)
		}
	}
	return ids
}
