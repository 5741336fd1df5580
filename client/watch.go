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
	dead  int        // alarms in heap that were removed and wait for the next sweep
	armed instant    // when the goroutine will look by itself
	held  map[uint64]*Lock
	bound int // how many of held are bound to a connection
	early map[uint64]Reason
	owed  int           // debts that are not settled
	clear chan struct{} // closed when owed falls to 0, if somebody waits for that
}

// alarm is a place in the list, embedded in what it rings.
type alarm struct {
	at   instant
	pos  int  // place in the heap plus 1; 0 = not there
	dead bool // there, but not set
	who  ringer
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
