package replica

import (
	"fmt"
	"slices"
	"time"
)

// node is one process of a world: a machine, the toy state it replicates, and
// an owner that carries out what the machine asks for.
type node struct {
	w     *world
	rank  int
	names []string // its own peers list; nil: the world's

	up       bool
	paused   bool
	boot     uint64
	bootAt   time.Duration
	inbox    []Input   // while paused
	requests []request // while paused
	pausedAt time.Duration
	linked   ranks // with whom, when it was paused
	reignAt  time.Duration
	wires    []*wire
	pulls    map[LinkID]bool
	m        *Machine
	state    *toy
	counter  uint64
	mark     Token // what a data directory keeps

	stash   map[Rank]*toy
	parked  []request
	waiting map[string]request // by key and ticket
	gated   []gatedReply
	endedAt map[Token]Position
	frozen  bool
	frozeAt time.Duration
	depth   int
	lapsed  bool  // after BecomeStandby, until Moved
	reigned Epoch // that the checker has seen begin
	resumed Time  // from the last pause
	checked Position
	checks  int
}

// request is what a client asks of a node.
type request struct {
	id     uint64
	op     string // acquire or release
	key    string
	ticket string
	token  Token
	reply  func(answer)
}

// answer is a node's one answer to a request.
type answer struct {
	code  string // granted, released, unknown, moved
	token Token
	to    Rank
}

type gatedReply struct {
	at Position
	r  request
	a  answer
}

const tick = 25 * time.Millisecond

// lag is the time that the machine sees: since its process started.
func (n *node) time() Time { return Time(n.w.now - n.bootAt) }

func (n *node) start() {
	n.boot++
	n.up, n.paused, n.bootAt = true, false, n.w.now
	n.pausedAt, n.reignAt = 0, 0
	n.requests = nil
	n.inbox, n.wires, n.pulls = nil, nil, map[LinkID]bool{}
	last, state := n.m, n.state
	n.state, n.counter = newToy(), 0
	n.stash, n.parked, n.waiting, n.gated = map[Rank]*toy{}, nil, map[string]request{}, nil
	n.reigned = 0
	n.resumed, n.checked, n.checks = 0, Position{}, 0
	n.endedAt, n.frozen, n.lapsed = map[Token]Position{}, false, false
	cfg := n.w.cfg
	cfg.Rank = Rank(n.rank)
	if n.names != nil {
		cfg.Names = n.names
		cfg.Rank = Rank(slices.Index(n.names, n.w.cfg.Names[n.rank]))
	}
	cfg.Incarnation = Incarnation(n.boot*100 + uint64(n.rank) + 1)
	cfg.WallAtZero = int64((n.w.now + n.w.clocks[n.rank]) / time.Millisecond)
	if n.w.disk {
		cfg.Highest = n.mark
	}
	if n.w.journal && last != nil && last.whole && last.reigning == 0 {
		cfg.Position, cfg.Lineage, n.state = last.pos, last.lineage, state
	}
	m, err := New(cfg, n.time())
	if err != nil {
		panic(err)
	}
	n.m = m
	n.hearMark(cfg.Highest)
	boot := n.boot
	n.tick(boot)
	for _, p := range n.w.nodes {
		if p != n {
			n.dialLoop(boot, p)
		}
	}
}

func (n *node) running(boot uint64) bool { return n.up && n.boot == boot }

func (n *node) tick(boot uint64) {
	if !n.running(boot) {
		return
	}
	if !n.paused {
		n.feed(Tick{})
	}
	n.w.after(tick, func() { n.tick(boot) })
}

// dialLoop dials a peer as long as there is no connection to it.
func (n *node) dialLoop(boot uint64, p *node) {
	if !n.running(boot) {
		return
	}
	if !n.paused && n.wireTo(p) == nil {
		n.w.dial(n, p)
	}
	n.w.after(50*time.Millisecond+time.Duration(n.w.rand.Int64N(int64(250*time.Millisecond))), func() { n.dialLoop(boot, p) })
}

func (n *node) wireTo(p *node) *wire {
	for _, l := range n.wires {
		if l.ends[0] == p || l.ends[1] == p {
			return l
		}
	}
	return nil
}

func (n *node) forget(l *wire) {
	n.wires = slices.DeleteFunc(n.wires, func(x *wire) bool { return x == l })
}

func (n *node) wire(id LinkID) (*wire, int) {
	for _, l := range n.wires {
		if l.id == id {
			if l.ends[0] == n {
				return l, 0
			}
			return l, 1
		}
	}
	return nil, 0
}

// crash ends the process. Peers notice by the reset of their connections.
func (n *node) crash() {
	n.up = false
	for _, l := range slices.Clone(n.wires) {
		_, end := n.wire(l.id)
		l.close(end)
	}
}

func (n *node) pause() {
	n.paused, n.pausedAt, n.linked = true, n.w.now, 0
	n.m.each(func(r Rank, p *peer) {
		if p.link != 0 {
			n.linked.add(r)
		}
	})
}

func (n *node) resume() {
	n.paused, n.resumed = false, n.time()
	inbox, requests := n.inbox, n.requests
	n.inbox, n.requests = nil, nil
	for _, r := range requests { // they lay in its socket buffers
		n.request(r)
	}
	for _, in := range inbox {
		if n.up {
			n.feed(in)
		}
	}
}

// feed gives the machine an input and carries out what follows.
func (n *node) feed(in Input) {
	if !n.up {
		return
	}
	if n.paused {
		n.inbox = append(n.inbox, in)
		return
	}
	if n.w.broken == promoteBehind {
		in = hidePositions(in)
	}
	n.depth++
	var act Actions
	n.m.Step(n.time(), in, &act)
	for _, a := range act.List {
		n.carryOut(a)
	}
	n.depth--
	if n.depth == 0 && n.w.check != nil && n.up {
		n.w.check.step(n)
	}
}

// hidePositions makes a node blind for who is ahead.
func hidePositions(in Input) Input {
	r, ok := in.(Received)
	if !ok {
		return in
	}
	if h, _ := DecodeMessage(r.Data); h != nil && h.Kind() == KindHeartbeat {
		h.(*Heartbeat).Position = Position{}
		return Received{r.Link, AppendMessage(nil, h)}
	}
	return in
}

func (n *node) carryOut(a Action) {
	switch a := a.(type) {
	case Send:
		if l, end := n.wire(a.Link); l != nil {
			l.send(end, AppendMessage(nil, a.Msg))
			if a.Lane == Bulk {
				n.pullLater(a.Link)
			}
		}
	case Wake:
		n.pullLater(a.Link)
	case CloseLink:
		if l, end := n.wire(a.Link); l != nil {
			boot := n.boot
			n.forget(l) // the farewell that was sent before must get through
			n.w.after(2*n.w.latency(), func() {
				if n.running(boot) {
					l.close(end)
				}
			})
		}
	case Redial:
		if p := n.w.nodes[a.Peer]; n.wireTo(p) == nil {
			n.w.dial(n, p)
		}
	case BecomeActive:
		n.reignAt = n.w.now
		n.begin(a.Heard, a.Gap)
		if n.w.check != nil && a.Gap > 0 {
			n.w.check.lossAt = n.w.now
		}
		n.lapsed = false
		n.serveParked()
	case NewReign:
		n.reignAt = n.w.now
		n.begin(a.Heard, a.Gap)
		if n.w.check != nil && a.Gap > 0 {
			n.w.check.lossAt = n.w.now
		}
	case BecomeStandby:
		n.lapsed, n.frozen = true, false
		for _, g := range n.gated {
			n.parked = append(n.parked, g.r)
		}
		n.gated = nil
	case Moved:
		n.lapsed = false
		n.moved(a.To)
	case Freeze:
		n.frozen, n.frozeAt = true, n.w.now
	case Unfreeze:
		n.frozen = false
		n.serveParked()
	case HearToken:
		n.hearMark(a.Token)
	case Apply:
		n.apply(decodeRun(a.Run))
	case TakeSnapshot:
		events, next := n.state.snapshot(a.Cursor)
		n.feed(SnapshotChunk{Link: a.Link, Next: next, Run: encodeRun(events)})
	case StashOffer:
		if n.stash[a.Peer] == nil {
			n.stash[a.Peer] = newToy()
		}
		for _, e := range decodeRun(a.Run) {
			n.stash[a.Peer].fold(e)
		}
	case DropOffer:
		delete(n.stash, a.Peer)
	case AdoptOffer:
		n.state = n.stash[a.Peer]
		delete(n.stash, a.Peer)
	case MergeOffer:
		n.mergeOffer(a)
	case HashState:
		n.feed(StateHash{For: a.For, Hash: n.state.sum()})
	case ReleaseGate:
		n.releaseGate(a.Position)
	case TrimEnded:
		n.trim(a.Position)
	case RoleChanged:
		n.print("%s -> %s at %s: %s", a.From, a.To, n.w.place(a.Position), a.Why)
	case Note:
		if a.Peer != Nobody {
			n.print("%s n%d %s", a.Fact, a.Peer, n.w.text(a.Text))
		} else {
			n.print("%s %s", a.Fact, n.w.text(a.Text))
		}
	case Exit:
		n.print("exit: %s", a.Why)
		n.crash()
	}
}

func (n *node) pullLater(id LinkID) {
	boot := n.boot
	if n.pulls[id] {
		return
	}
	n.pulls[id] = true
	n.w.after(200*time.Microsecond, func() {
		if n.running(boot) {
			n.pulls[id] = false
			n.feed(Pull{Link: id, Max: 200})
		}
	})
}

func (n *node) print(format string, args ...any) {
	n.w.log("n%d %s", n.rank, fmt.Sprintf(format, args...))
}
