package client

import (
	"sync"
	"time"
)

// watch is the client's one list of what falls due: leases that end, leases to
// extend, releases owed. One goroutine serves it, however many locks there are.
//
// A map of locks by token stands beside it for the pushes of the server.
type watch struct {
	clock clock
	wake  chan struct{} // one slot: an alarm before armed was set

	mu    sync.Mutex // guards what follows and each alarm
	heap  []*alarm   // 4-ary, earliest first; heap[i].pos == i+1
	armed instant    // when the goroutine will look by itself
	held  map[uint64]*Lock
	bound int // how many of held are bound to a connection
	early map[uint64]Reason
	owed  int           // debts that are not settled
	clear chan struct{} // closed when owed falls to 0, if somebody waits for that
}

// alarm is a place in the list, embedded in what it rings.
type alarm struct {
	at  instant
	pos int // place in the heap plus 1; 0 = not set
	who ringer
}

// ringer is rung without watch.mu once its alarm is due, by the watch's
// goroutine only. It returns when to ring again, 0 = not on its account.
type ringer interface {
	ring(now instant) (again instant)
}

// maxEarly bounds the losses that are remembered for grants whose callers have
// not taken them up yet; at the bound all are forgotten (L is advice).
const maxEarly = 1024

func (w *watch) init(k clock) {
	w.clock = k
	w.wake = make(chan struct{}, 1)
	w.held = make(map[uint64]*Lock)
	w.early = make(map[uint64]Reason)
}

// run rings alarms until done is closed.
func (w *watch) run(done <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := w.clock.now()
		for a := w.due(now); a != nil; a = w.due(now) {
			if again := a.who.ring(now); again != 0 {
				w.set(a, again)
			}
			now = w.clock.now()
		}
		timer.Reset(w.arm().sub(w.clock.now()))
		select {
		case <-timer.C:
		case <-w.wake:
		case <-done:
			return
		}
	}
}

// due takes the earliest alarm out if it is due.
func (w *watch) due(now instant) *alarm {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = 0 // awake: nobody need wake it
	if len(w.heap) == 0 || w.heap[0].at > now {
		return nil
	}
	a := w.heap[0]
	w.removeLocked(a)
	return a
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
	case t < a.at:
		a.at = t
		w.up(a.pos - 1)
	}
	return t < w.armed
}

func (w *watch) removeLocked(a *alarm) {
	if a.pos == 0 {
		return
	}
	i, last := a.pos-1, len(w.heap)-1
	moved := w.heap[last]
	w.heap[last] = nil
	w.heap = w.heap[:last]
	a.pos = 0
	if i == last {
		return
	}
	w.heap[i], moved.pos = moved, i+1
	w.up(i)
	w.down(moved.pos - 1)
}

// up and down move heap[i] to where it belongs. Four children instead of two:
// most alarms are set for later than all others, so they rise by no step.
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

// hold registers a lock that was granted and sets its first alarm. It returns
// the reason if the server has told meanwhile that it is lost.
func (w *watch) hold(l *Lock, first instant) (lost Reason) {
	w.mu.Lock()
	if len(w.early) > 0 {
		lost = w.early[l.token]
		delete(w.early, l.token)
	}
	w.held[l.token] = l
	if l.isBound() {
		w.bound++
	}
	wake := w.setLocked(&l.alarm, first)
	w.mu.Unlock()
	if wake {
		w.rouse()
	}
	return lost
}

// dropLocked is the reverse of hold.
func (w *watch) dropLocked(l *Lock) {
	if w.held[l.token] == l { // else a later handle of the same grant is there
		delete(w.held, l.token)
	}
	if l.isBound() {
		w.bound--
	}
	w.removeLocked(&l.alarm)
}

// lost finds the lock that a push is about. One that nobody holds yet is
// remembered: its grant came just before, and its caller has not run since.
// An expiry need not be, as the lock's own clock tells it first.
func (w *watch) lost(token uint64, reason Reason) *Lock {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.held[token]
	if l == nil && reason != LostExpired {
		if len(w.early) >= maxEarly {
			clear(w.early)
		}
		w.early[token] = reason
	}
	return l
}

// count returns how many locks are held.
func (w *watch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

// boundTo returns the locks that are bound to n.
func (w *watch) boundTo(n *conn) (locks []*Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound == 0 {
		return nil
	}
	for _, l := range w.held {
		if l.isBound() && l.conn == n {
			locks = append(locks, l)
		}
	}
	return locks
}

// everything returns all locks held.
func (w *watch) everything() (locks []*Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.held {
		locks = append(locks, l)
	}
	return locks
}
