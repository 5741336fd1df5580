package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"holdfast/internal/replica"
)

// world is a virtual network of nodes and a virtual clock, all in one
// goroutine: what happens is a queue of events in the order of their time.
type world struct {
	now    time.Duration
	queue  events
	order  uint64
	rand   *rand.Rand
	cfg    replica.Config // of every node, but for its own part
	piece  int            // claims in a piece of a snapshot
	nodes  []*process
	links  uint64
	clocks []time.Duration // how far each node's wall clock is off

	cut     map[[2]int]bool          // from, to: nothing gets through
	changed map[[2]int]time.Duration // when a path was last cut, mended or snapped
	latency func() time.Duration     // of one message
	slow    map[[2]int]time.Duration // more of it

	log   func(format string, args ...any)
	check *checker
	disk  bool // nodes keep the token mark over a restart
}

type event struct {
	at    time.Duration
	order uint64
	do    func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.queue, event{w.now + d, w.order, do})
}

// run lets d pass.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for len(w.queue) > 0 && w.queue[0].at <= end && w.check.fault == "" {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = end
}

// steady says whether the path between two nodes has been there, and quick, for so long.
func (w *world) steady(a, b int, d time.Duration) bool {
	for _, path := range [][2]int{{a, b}, {b, a}} {
		if w.cut[path] || w.slow[path] > 0 || w.now-w.changed[path] < d {
			return false
		}
	}
	return true
}

func (w *world) cutOff(from, to int) bool { return w.cut[[2]int{from, to}] }

// pipe is one connection between nodes. Each direction keeps its order; what
// is cut off waits, as in TCP, until the path is back or the connection is closed.
type pipe struct {
	id     replica.LinkID
	w      *world
	ends   [2]*process // the first one dialled
	boots  [2]uint64
	open   [2]bool
	closed bool
	last   [2]time.Duration // when the last message of an end arrives
	queue  [2][][]byte      // of an end: on the way, or held back while the path is cut or the other end is not there yet
}

func (w *world) dial(from, to *process) {
	boot := from.boot
	up := func() bool { return from.running(boot) }
	if w.cutOff(from.rank, to.rank) || w.cutOff(to.rank, from.rank) || to.paused {
		w.after(300*time.Millisecond, func() {
			if up() {
				from.feed(replica.DialFailed{Peer: replica.Rank(to.rank)})
			}
		})
		return
	}
	if !to.up {
		w.after(2*w.latency(), func() {
			if up() && !to.up {
				from.feed(replica.DialFailed{Peer: replica.Rank(to.rank), Refused: true})
			}
		})
		return
	}
	w.links++
	l := &pipe{id: replica.LinkID(w.links), w: w, ends: [2]*process{from, to}, boots: [2]uint64{boot, to.boot}}
	there := w.latency() // the accepting end is there first
	w.after(there, func() { l.establish(1) })
	w.after(there+w.latency(), func() { l.establish(0) })
}

func (l *pipe) alive(end int) bool { return l.ends[end].running(l.boots[end]) }

func (l *pipe) establish(end int) {
	if l.closed || !l.alive(end) {
		l.close(1 - end)
		return
	}
	l.open[end] = true
	n := l.ends[end]
	n.pipes = append(n.pipes, l)
	n.feed(replica.LinkUp{Link: l.id, Dialled: end == 0})
	l.release(1 - end)
}

// send puts a message into the pipe of an end.
func (l *pipe) send(end int, data []byte) {
	if l.closed {
		return
	}
	from, to := l.ends[end].rank, l.ends[1-end].rank
	l.queue[end] = append(l.queue[end], data)
	at := max(l.w.now+l.w.latency()+l.w.slow[[2]int{from, to}], l.last[end])
	l.last[end] = at
	l.w.after(at-l.w.now, func() { l.deliver(end) })
}

// deliver takes the next message out of the pipe of an end, if the path is there.
func (l *pipe) deliver(end int) {
	if l.closed || !l.alive(1-end) || len(l.queue[end]) == 0 || !l.open[1-end] ||
		l.w.cutOff(l.ends[end].rank, l.ends[1-end].rank) {
		return
	}
	data := l.queue[end][0]
	l.queue[end] = l.queue[end][1:]
	l.ends[1-end].feed(replica.Received{Link: l.id, Data: data})
}

// release lets go what a healed path held back.
func (l *pipe) release(end int) {
	for range l.queue[end] {
		l.w.after(l.w.latency(), func() { l.deliver(end) })
	}
}

// close ends the connection at both ends, the other one's after a latency, if
// the news can get through. What is in the pipes is lost.
func (l *pipe) close(by int) {
	if l.closed {
		return
	}
	l.closed = true
	for end, n := range l.ends {
		if end == by || !l.open[end] {
			n.forget(l)
			continue
		}
		if l.w.cutOff(l.ends[by].rank, n.rank) {
			continue // the end finds out by the silence
		}
		l.w.after(l.w.latency(), func() { l.tell(end) })
	}
}

// snap closes a link with all that is in flight, seen by both ends.
func (l *pipe) snap() {
	if l.closed {
		return
	}
	l.closed = true
	l.tell(0)
	l.tell(1)
}

func (l *pipe) tell(end int) {
	if n := l.ends[end]; l.alive(end) && l.open[end] {
		n.forget(l)
		n.feed(replica.LinkDown{Link: l.id})
	}
}

// setCut cuts or mends the path from one node to another.
func (w *world) setCut(from, to int, cut bool) {
	w.changed[[2]int{from, to}] = w.now
	if cut {
		w.cut[[2]int{from, to}] = true
		return
	}
	delete(w.cut, [2]int{from, to})
	for _, l := range append([]*pipe(nil), w.nodes[from].pipes...) {
		for end := range l.ends {
			if l.ends[end].rank == from && l.ends[1-end].rank == to {
				l.release(end)
			}
		}
	}
}

func (w *world) healAll() {
	for from := range w.nodes {
		for to := range w.nodes {
			if w.cutOff(from, to) {
				w.setCut(from, to, false)
			}
		}
	}
	for path := range w.slow {
		w.changed[path] = w.now
	}
	clear(w.slow)
}
