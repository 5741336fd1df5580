package client

import "time"

// The alarms of a watch: a 4-ary heap with the earliest first. Four children
// instead of two: most alarms are set for later than all others, so they rise
// by no step.

// due takes the earliest alarm out if it is due.
func (w *watch) due(now instant) *alarm {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = 0 // awake: nobody need wake it
	for len(w.heap) > 0 && w.heap[0].at <= now {
		a := w.heap[0]
		w.popLocked()
		if !a.dead {
			return a
		}
		a.dead = false
		w.dead--
	}
	return nil
}

// arm says until when the goroutine may sleep.
func (w *watch) arm() instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = w.clock.now().add(time.Hour)
	if len(w.heap) > 0 && w.heap[0].at < w.armed {
		w.armed = w.heap[0].at
	}
	return w.armed
}

// set makes a ring at t, or earlier if it is set for earlier already.
func (w *watch) set(a *alarm, t instant) {
	w.mu.Lock()
	wake := w.setLocked(a, t)
	w.mu.Unlock()
	if wake {
		w.rouse()
	}
}

// rouse wakes the goroutine.
func (w *watch) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// setLocked is set for callers that hold the mutex; wake says that they must
// call rouse after giving it up.
func (w *watch) setLocked(a *alarm, t instant) (wake bool) {
	switch {
	case a.pos == 0:
		a.at = t
		w.heap = append(w.heap, a)
		w.up(len(w.heap) - 1)
	case a.dead:
		a.dead = false
		w.dead--
		a.at = t
		w.up(a.pos - 1)
		w.down(a.pos - 1)
	case t < a.at:
		a.at = t
		w.up(a.pos - 1)
	}
	return t < w.armed
}

// removeLocked unsets a. Most locks are released long before their alarm, so
// it is only marked, and all that are marked leave the heap together: taking
// each out of the middle was an eighth of the cost of a grant and its release.
func (w *watch) removeLocked(a *alarm) {
	if a.pos == 0 || a.dead {
		return
	}
	a.dead = true
	if w.dead++; w.dead > 32+len(w.heap)/2 {
		w.sweepLocked()
	}
}

// sweepLocked takes the dead out and makes a heap of the others.
func (w *watch) sweepLocked() {
	kept := w.heap[:0]
	for _, a := range w.heap {
		if a.dead {
			a.dead, a.pos = false, 0
			continue
		}
		kept = append(kept, a)
		a.pos = len(kept)
	}
	clear(w.heap[len(kept):])
	w.heap, w.dead = kept, 0
	for i := (len(kept) - 2) / 4; i >= 0 && len(kept) > 1; i-- { // from the last parent
		w.down(i)
	}
}

// popLocked takes the earliest alarm, dead or not, out of the heap.
func (w *watch) popLocked() {
	last := len(w.heap) - 1
	a, moved := w.heap[0], w.heap[last]
	w.heap[last] = nil
	w.heap = w.heap[:last]
	a.pos = 0
	if moved != a {
		w.heap[0], moved.pos = moved, 1
		w.down(0)
	}
}

// up and down move heap[i] to where it belongs.
func (w *watch) up(i int) {
	a := w.heap[i]
	for i > 0 {
		parent := (i - 1) / 4
		if w.heap[parent].at <= a.at {
			break
		}
		w.heap[i] = w.heap[parent]
		w.heap[i].pos = i + 1
		i = parent
	}
	w.heap[i] = a
	a.pos = i + 1
}

func (w *watch) down(i int) {
	a := w.heap[i]
	for {
		least := a
		at := i
		for child := 4*i + 1; child <= 4*i+4 && child < len(w.heap); child++ {
			if w.heap[child].at < least.at {
				least, at = w.heap[child], child
			}
		}
		if at == i {
			break
		}
		w.heap[i] = least
		least.pos = i + 1
		i = at
	}
	w.heap[i] = a
	a.pos = i + 1
}
