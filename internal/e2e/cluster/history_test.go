//go:build linux

package cluster

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// instant is a time of one history: what has passed since it began, by the monotonic clock. All clients of a test are in
// one process, so instants of different clients compare.
type instant time.Duration

// history is all that the clients of a test were told.
type history struct {
	began time.Time

	mu       sync.Mutex // guards what follows
	attempts []*attempt
	verdicts []verdict
	faults   []fault
	errors   []string      // what a client could not do
	changed  chan struct{} // closed, and made anew, at each grant
}

// attempt is an acquire that was granted, and the hold that it led to.
type attempt struct {
	client  string
	key     string
	node    string // that granted; "" = not known
	token   uint64
	lease   time.Duration
	ticket  bool    // it keeps its place in line when connections drop
	asked   instant // before it was sent first
	read    instant // when a node had surely read it; 0 = not known to be before granted
	granted instant // when the answer was here
	ended   instant // before the holder began to give it up; 0 = it never did
}

// verdict is what a node said of a token, in answer to an extend or a release.
type verdict struct {
	key      string
	token    uint64
	release  bool
	holds    bool // "extended" or "released", not "not the holder"
	repeated bool // an earlier sending may have been carried out
	lease    time.Duration
	asked    instant
	answered instant
}

// fault is a time in which something is not promised.
type fault struct {
	kind     faultKind
	from, to instant
}

type faultKind string

const (
	// crash: what was answered, or got a place in line, may be lost; whoever was granted a key may share it.
	crash faultKind = "crash"
	// split: as crash, and two nodes may serve, unknown to each other: tokens need not rise between them either.
	split faultKind = "split"
	// freeze: a hand-off is under way. An acquire may be parked, and is then not in line yet.
	freeze faultKind = "freeze"
	// place: an active was killed. Nobody was told of a place in line that was taken in its last instants (on TCP that is
	// no answer, so nothing waits for an acknowledgement), and the next active may not know of it.
	place faultKind = "place"
)

func newHistory() *history { return &history{began: time.Now(), changed: make(chan struct{})} }

func (h *history) now() instant { return instant(time.Since(h.began)) + 1 } // 0 is no instant

func (h *history) granted(a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts = append(h.attempts, a)
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *history) giveUp(a *attempt) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	a.ended = now
}

func (h *history) judged(v verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verdicts = append(h.verdicts, v)
}

func (h *history) failed(client, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors = append(h.errors, fmt.Sprintf("%v: %s: ", time.Duration(h.now()), client)+fmt.Sprintf(format, args...))
}

// declare names a time in which less is promised.
func (h *history) declare(f fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, f)
}

// more returns once there were n more grants.
func (h *history) more(t *testing.T, n int) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	h.mu.Lock()
	want := len(h.attempts) + n
	h.mu.Unlock()
	for {
		h.mu.Lock()
		got, changed := len(h.attempts), h.changed
		h.mu.Unlock()
		if got >= want {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("%d of %d more grants within %v", n-(want-got), n, patience)
		}
	}
}
