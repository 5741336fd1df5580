package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/internal/replica"
)

// process is one node's process in the world, over its restarts: the real
// node, whose links are pipes and whose clock is the world's.
type process struct {
	w    *world
	rank int

	up     bool
	paused bool
	boot   uint64
	bootAt time.Duration
	n      *node.Node
	m      *replica.Machine // n's, to look at
	t      *locks.Table     // the same
	pipes  []*pipe
	pulls  map[replica.LinkID]bool
	mark   locks.Token // what a data directory keeps

	// While it is paused, what lies in its socket buffers.
	inbox    []replica.Input
	requests []func()

	// For the checker.
	pausedAt time.Duration
	resumed  time.Duration
	linked   [replica.MaxNodes]bool // with whom, when it was paused
	reignAt  time.Duration
	seen     replica.Position
	epoch    replica.Epoch
	frozenAt time.Duration // 0: it is not
}

// turnEvery is how often a process does what is due: at least every half heartbeat.
const turnEvery = 50 * time.Millisecond

// dawn is the wall clock at the world's beginning.
var dawn = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

func (p *process) start() {
	p.boot++
	*p = process{w: p.w, rank: p.rank, up: true, boot: p.boot, bootAt: p.w.now, mark: p.mark, pulls: map[replica.LinkID]bool{}}
	cluster := &node.Cluster{Machine: p.w.cfg, SnapshotPiece: p.w.piece, Log: slog.New(lines{p})}
	cluster.Machine.Rank = replica.Rank(p.rank)
	table := locks.DefaultConfig()
	cfg := node.Config{
		Name: p.w.cfg.Names[p.rank], Version: "v0.1.0", Native: p.w.cfg.Names[p.rank] + ":7620",
		Table: table, Cluster: cluster, Random: p.w.rand.Uint64,
		Clock: &node.Clock{
			Zero: dawn.Add(p.w.now + p.w.clocks[p.rank]),
			Now:  func() locks.Time { return locks.Time(p.w.now - p.bootAt) },
		},
	}
	boot := p.boot
	cfg.Observe = func(first replica.Position, events []locks.Event) {
		if p.boot == boot {
			p.w.check.observe(p, first, events)
		}
	}
	if p.w.disk {
		cfg.Mark = p.mark
	}
	var err error
	if p.n, err = node.New(cfg); err != nil {
		panic(err)
	}
	p.n.Inspect(func(m *replica.Machine, t *locks.Table) { p.m, p.t = m, t })
	p.n.Connect(p)
	p.keepMark()
	p.turn(boot)
	for _, other := range p.w.nodes {
		if other != p {
			p.dialLoop(boot, other)
		}
	}
}

func (p *process) running(boot uint64) bool { return p.up && p.boot == boot }

// steady says whether the process has run undisturbed for so long.
func (p *process) steady(d time.Duration) bool {
	return p.up && !p.paused && p.w.now-p.bootAt >= d && p.w.now-p.resumed >= d
}

func (p *process) keepMark() { p.mark = max(p.mark, p.n.MarkAhead(time.Second)) }

// turn is the process's timer.
func (p *process) turn(boot uint64) {
	if !p.running(boot) {
		return
	}
	if !p.paused {
		p.n.Turn()
		p.keepMark()
		p.looked()
	}
	p.w.after(turnEvery, func() { p.turn(boot) })
}

// looked lets the checker look at a process after it did something, and ends
// one that wants to end.
func (p *process) looked() {
	if p.up {
		p.w.check.step(p)
	}
	select {
	case err := <-p.n.Failed():
		p.print("fails: %v", err)
		p.crash()
	default:
	}
	if p.up && p.n.Exited() {
		p.print("exits")
		p.crash()
	}
}

// feed gives the node an input from its links.
func (p *process) feed(in replica.Input) {
	if !p.up {
		return
	}
	if p.paused {
		p.inbox = append(p.inbox, in)
		return
	}
	p.n.Step(in)
	p.looked()
}

// ask does something that a client wants.
func (p *process) ask(do func()) {
	if !p.up {
		return
	}
	if p.paused {
		p.requests = append(p.requests, do)
		return
	}
	do()
	p.looked()
}

// Push is the node's way out, under its mutex.
func (p *process) Push(a replica.Action) bool {
	switch a := a.(type) {
	case replica.Send:
		if l, end := p.pipe(a.Link); l != nil {
			if c, ok := a.Msg.(*replica.Chunk); ok && p.w.check.verbose {
				p.print("sends n%d a chunk of %s, %d bytes, first %v, last %v", l.ends[1-end].rank, c.Position, len(c.Events), c.First, c.Last)
			}
			l.send(end, replica.AppendMessage(nil, a.Msg))
			if a.Lane == replica.Bulk {
				p.pullLater(a.Link)
			}
		}
	case replica.Wake:
		p.pullLater(a.Link)
	case replica.CloseLink:
		if l, end := p.pipe(a.Link); l != nil {
			boot := p.boot
			p.forget(l) // the farewell that was sent before must get through
			p.w.after(2*p.w.latency(), func() {
				if p.running(boot) {
					l.close(end)
				}
			})
		}
	case replica.Redial:
		if other := p.w.nodes[a.Peer]; p.pipeTo(other) == nil {
			p.w.dial(p, other)
		}
	default:
		return false
	}
	return true
}

// pullBytes is little: a stream is cut into many messages.
const pullBytes = 600

func (p *process) pullLater(id replica.LinkID) {
	boot := p.boot
	if p.pulls[id] {
		return
	}
	p.pulls[id] = true
	p.w.after(200*time.Microsecond, func() {
		if p.running(boot) {
			p.pulls[id] = false
			p.feed(replica.Pull{Link: id, Max: pullBytes})
		}
	})
}

// dialLoop dials a peer as long as there is no connection to it.
func (p *process) dialLoop(boot uint64, other *process) {
	if !p.running(boot) {
		return
	}
	if !p.paused && p.pipeTo(other) == nil {
		p.w.dial(p, other)
	}
	p.w.after(50*time.Millisecond+time.Duration(p.w.rand.Int64N(int64(250*time.Millisecond))), func() { p.dialLoop(boot, other) })
}

func (p *process) pipeTo(other *process) *pipe {
	for _, l := range p.pipes {
		if l.ends[0] == other || l.ends[1] == other {
			return l
		}
	}
	return nil
}

func (p *process) forget(l *pipe) {
	p.pipes = slices.DeleteFunc(p.pipes, func(x *pipe) bool { return x == l })
}

func (p *process) pipe(id replica.LinkID) (*pipe, int) {
	for _, l := range p.pipes {
		if l.id == id {
			if l.ends[0] == p {
				return l, 0
			}
			return l, 1
		}
	}
	return nil, 0
}

// crash ends the process. Peers notice by the reset of their connections.
func (p *process) crash() {
	p.up = false
	for _, l := range slices.Clone(p.pipes) {
		_, end := p.pipe(l.id)
		l.close(end)
	}
}

func (p *process) pause() {
	p.paused, p.pausedAt = true, p.w.now
	p.linked = [replica.MaxNodes]bool{}
	for _, peer := range p.m.Status().Peers {
		p.linked[peer.Rank] = peer.Alive
	}
}

func (p *process) resume() {
	p.paused, p.resumed = false, p.w.now
	inbox, requests := p.inbox, p.requests
	p.inbox, p.requests = nil, nil
	for _, do := range requests { // they lay in its socket buffers
		p.ask(do)
	}
	for _, in := range inbox {
		p.feed(in)
	}
}

// stop asks the process to end gracefully.
func (p *process) stop() {
	if p.up && !p.paused {
		p.n.BeginLeave()
		p.looked()
	}
}

func (p *process) print(format string, args ...any) {
	p.w.log("n%d %s", p.rank, fmt.Sprintf(format, args...))
}

// lines makes lines of the history of what the node logs.
type lines struct{ p *process }

func (l lines) Enabled(context.Context, slog.Level) bool { return l.p.w.check.verbose }
func (l lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l lines) WithGroup(string) slog.Handler            { return l }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "event" {
			text += " " + a.String()
		}
		return true
	})
	l.p.print("%s", text)
	return nil
}
