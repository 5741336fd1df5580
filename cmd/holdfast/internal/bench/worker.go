package bench

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"holdfast/cmd/holdfast/internal/session"
	"holdfast/wire"
)

// Bounds of the latency histograms: 1 ns to a minute with two significant
// digits, 30 KB each. What takes longer counts as a minute.
const (
	longestLatency    = time.Minute
	significantDigits = 2
)

// slot is one request outstanding, with the key that it is about.
type slot struct {
	req   wire.Request // req.Key is key[:], set once
	key   [keyBytes]byte
	index int           // of the slot among all connections' slots
	turn  int           // number of the key within the slot's own keys
	sent  time.Duration // since the run's epoch
}

// worker is one connection with what was measured on it.
type worker struct {
	// Static after opening.
	run  *run
	conn *session.Conn

	// Owned by the goroutine that pumps.
	slots    []slot
	reply    wire.Reply
	tickets  uint64
	hist     *hdrhistogram.Histogram
	measured uint64 // operations that ended in the measured time
	faults   tally
	err      error // why the connection failed, nil if it did not

	// Read by the progress line at any time.
	done   atomic.Uint64 // operations
	failed atomic.Uint64 // requests
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longestLatency), significantDigits)
}

// next prepares the slot's following request and returns false to end the
// slot. r is the answer to the one before, nil at the start; now is when it was
// read, since the epoch.
type next func(s *slot, r *wire.Reply, now time.Duration) bool

// pump keeps all slots busy until each has ended or the connection fails.
func (w *worker) pump(f next) {
	inFlight := 0
	for i := range w.slots {
		if s := &w.slots[i]; f(s, nil, 0) {
			w.send(s)
			inFlight++
		}
	}
	for inFlight > 0 {
		s, err := w.receive()
		if err != nil {
			w.breakOff(err, inFlight)
			return
		}
		if f(s, &w.reply, w.run.now()) {
			w.send(s)
		} else {
			inFlight--
		}
	}
}

func (w *worker) send(s *slot) {
	s.sent = w.run.now()
	w.conn.Queue(&s.req)
}

// receive returns the slot whose request was answered, with the answer in
// w.reply.
func (w *worker) receive() (*slot, error) {
	for {
		if err := w.conn.Next(&w.reply); err != nil {
			return nil, err
		}
		if w.reply.Status == wire.StatusPush {
			continue
		}
		i := int(w.reply.ID) - 1 // id 0 is the protocol's ordered mode, so the first slot has 1
		if i < 0 || i >= len(w.slots) {
			return nil, fmt.Errorf("answer to request %d, which was not sent: %v", w.reply.ID, w.reply)
		}
		return &w.slots[i], nil
	}
}

func (w *worker) record(latency time.Duration) {
	if err := w.hist.RecordValue(int64(min(max(latency, 1), longestLatency))); err != nil {
		panic(err) // the value was clamped to the bounds of the histogram
	}
}

func (w *worker) fail(f fault, requests int) {
	w.faults[f] += uint64(requests)
	w.failed.Add(uint64(requests))
}

// breakOff counts the requests that a failed connection leaves unanswered.
func (w *worker) breakOff(err error, requests int) {
	if w.err == nil {
		w.err = err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.fail(faultSilent, requests)
	} else {
		w.fail(faultConnection, requests)
	}
}

// newSlots gives each slot its request. Slot i of worker number n is slot
// n*depth+i of the run.
func newSlots(number, depth int) []slot {
	slots := make([]slot, depth)
	for i := range slots {
		s := &slots[i]
		s.index = number*depth + i
		s.req.ID = uint32(i + 1)
		s.req.Key = s.key[:]
	}
	return slots
}

// acquire makes the slot's next request an acquire of key number n.
func (w *worker) acquire(s *slot, n int) {
	w.run.keys.put(&s.key, n)
	s.req.Op, s.req.Flags = wire.OpAcquire, wire.FlagTry
	s.req.LeaseMS, s.req.WaitMS = w.run.leaseMS, 0
	if w.run.cfg.Tickets {
		w.tickets++
		s.req.Ticket = w.run.keys.ticket(s.index, w.tickets)
	}
}

// release makes the slot's next request the release of its key.
func (s *slot) release(token uint64) {
	s.req.Op, s.req.Flags, s.req.Token = wire.OpRelease, 0, token
}
