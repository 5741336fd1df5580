package replica

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// puppet is one machine whose peers are played by the test, message by message.
type puppet struct {
	t     *testing.T
	m     *Machine
	now   Time
	state *toy
	epoch Epoch
	links LinkID
	nonce map[LinkID]uint64
	said  map[LinkID]Heartbeat // what each played peer says of itself
	hold  map[LinkID]bool      // says nothing
	out   []Action             // since the last take
}

func newPuppet(t *testing.T, rank Rank, change func(*Config)) *puppet {
	cfg := DefaultConfig()
	cfg.Names, cfg.Rank, cfg.Incarnation = []string{"n0", "n1", "n2"}, rank, 100
	cfg.Major, cfg.Minor, cfg.LogBytes = 1, 5, 1<<12
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg, 0)
	if err != nil {
		panic(err)
	}
	return &puppet{t: t, m: m, state: newToy(), epoch: 1000, nonce: map[LinkID]uint64{}, said: map[LinkID]Heartbeat{}, hold: map[LinkID]bool{}}
}

func (p *puppet) feed(in Input) {
	var act Actions
	p.m.Step(p.now, in, &act)
	p.out = append(p.out, act.List...)
	for _, a := range act.List {
		switch a := a.(type) {
		case BecomeActive, NewReign:
			p.epoch += 1000
			p.feed(Activated{Epoch: p.epoch, Run: encodeRun([]string{"epoch 1"})})
		case HashState:
			p.feed(StateHash{For: a.For, Hash: 7})
		case TakeSnapshot:
			p.feed(SnapshotChunk{Link: a.Link, Run: encodeRun([]string{"clear"})})
		case MergeOffer:
			p.feed(OfferMerged(a))
		}
	}
}

func hello(rank Rank, inc Incarnation) *Hello {
	return &Hello{Name: fmt.Sprintf("n%d", rank), Rank: rank, Incarnation: inc, Major: 1, Minor: 5, Names: []string{"n0", "n1", "n2"}}
}

// greet makes a link and says hello on it.
func (p *puppet) greet(h *Hello) LinkID {
	p.links++
	p.feed(LinkUp{Link: p.links, Dialled: true})
	p.say(p.links, h)
	return p.links
}

func (p *puppet) say(id LinkID, m Message) {
	p.feed(Received{Link: id, Data: AppendMessage(nil, m)})
}

// peer makes a peer that is alive and says that of itself.
func (p *puppet) peer(rank Rank, says Heartbeat) LinkID {
	id := p.greet(hello(rank, Incarnation(rank)+1))
	p.says(id, says)
	return id
}

func (p *puppet) says(id LinkID, says Heartbeat) {
	p.said[id] = says
	p.beat(id)
}

// beat sends a heartbeat that echoes all that the machine has sent.
func (p *puppet) beat(id LinkID) {
	l := p.m.findLink(id)
	if l == nil || l.peer == Nobody || p.hold[id] || p.said[id].Role == 0 {
		return
	}
	p.nonce[id]++
	h := p.said[id]
	h.Nonce, h.Echo = p.nonce[id], p.m.peers[l.peer].nonce
	p.say(id, &h)
}

// run lets time pass with ticks and heartbeats.
func (p *puppet) run(d time.Duration) {
	for end := p.now.Add(d); p.now < end; {
		p.now = p.now.Add(tick)
		p.feed(Tick{})
		for id := LinkID(1); id <= p.links; id++ {
			p.beat(id)
		}
	}
}

// take returns what came out since the last take, without heartbeats.
func (p *puppet) take() string {
	var b strings.Builder
	for _, a := range p.out {
		if s, ok := a.(Send); ok {
			if s.Msg.Kind() == KindHeartbeat || s.Msg.Kind() == KindHello {
				continue
			}
			fmt.Fprintf(&b, "send %d %T%+v; ", s.Link, s.Msg, reflect.ValueOf(s.Msg).Elem())
			continue
		}
		fmt.Fprintf(&b, "%T%+v; ", a, a)
	}
	p.out = nil
	return b.String()
}

// wants checks that some texts stand in what came out, in any order, and that
// those that begin with ! do not.
func (p *puppet) wants(texts ...string) {
	p.t.Helper()
	got := p.take()
	for _, x := range texts {
		x, not := strings.CutPrefix(x, "!")
		if strings.Contains(got, x) == not {
			p.t.Errorf("%q: wanted %v in %s", x, !not, got)
		}
	}
}

// following is a standby, n1, in step with a played n0 at 500/10.
func followingPuppet(t *testing.T) (*puppet, LinkID) {
	p := newPuppet(t, 1, nil)
	id := p.peer(0, Heartbeat{Role: Active, Complete: true, Active: 0, ActiveEpoch: 500, Position: Position{500, 10}})
	p.wants("Follow{ID:1 ")
	p.say(id, &Chunk{ID: 1, Position: Position{500, 10}, First: true, Last: true, Events: encodeRun([]string{"clear"})})
	p.wants("RoleChanged{From:joining To:standby", "Ack{ID:1 Position:500/10}")
	return p, id
}

// C-64: what a stream may hold that does not fit.
func TestStreamThatDoesNotFit(t *testing.T) {
	run := encodeRun([]string{"grant k1 8 x", "end k1 8"})
	for name, m := range map[string]*Stream{
		"a gap":                      {ID: 1, Epoch: 500, First: 12, Events: run},
		"a repeat":                   {ID: 1, Epoch: 500, First: 10, Events: run},
		"a foreign epoch":            {ID: 1, Epoch: 700, First: 11, Events: run},
		"an earlier epoch":           {ID: 1, Epoch: 400, First: 1, Prev: Position{500, 10}, Events: run},
		"a reign that followed less": {ID: 1, Epoch: 700, First: 1, Prev: Position{500, 9}, Events: run},
		"no event":                   {ID: 1, Epoch: 500, First: 11},
		"half an event":              {ID: 1, Epoch: 500, First: 11, Events: run[:len(run)-1]},
	} {
		t.Run(name, func(t *testing.T) {
			p, id := followingPuppet(t)
			p.say(id, m)
			p.wants("Fact:gap")
			if p.m.pos != (Position{500, 10}) {
				t.Errorf("the position is %v", p.m.pos)
			}
			p.run(200 * time.Millisecond)
			p.wants("Follow{ID:2 Position:500/10")
			p.say(id, &Stream{ID: 1, Epoch: 500, First: 11, Events: run}) // of the old stream
			p.wants("!Apply")
			p.say(id, &Resume{ID: 2})
			p.say(id, &Stream{ID: 2, Epoch: 500, First: 11, Events: run})
			p.wants("Apply", "Ack{ID:2 Position:500/12}")
		})
	}
}

func TestChunkThatDoesNotFit(t *testing.T) {
	p := newPuppet(t, 1, nil)
	id := p.peer(0, Heartbeat{Role: Active, Complete: true, Active: 0, ActiveEpoch: 500, Position: Position{500, 10}})
	p.say(id, &Chunk{ID: 1, Position: Position{500, 10}, Events: encodeRun([]string{"clear"})})
	p.wants("Fact:gap") // not the first
	p.run(200 * time.Millisecond)
	p.say(id, &Chunk{ID: 2, Position: Position{500, 10}, First: true, Events: encodeRun([]string{"clear"})})
	p.take()
	if p.m.whole || p.m.role != Joining {
		t.Errorf("half a snapshot: whole %v, %v", p.m.whole, p.m.role)
	}
	p.say(id, &Chunk{ID: 2, Position: Position{500, 12}, Last: true})
	p.wants("Fact:gap") // taken two events later
}

func TestGarbageClosesTheLink(t *testing.T) {
	p, id := followingPuppet(t)
	p.feed(Received{Link: id, Data: []byte{byte(KindStream), 1, 2}})
	p.wants("Refuse{From:1 Code:garbage", "CloseLink")
	p.feed(Received{Link: id, Data: []byte{99}})
	p.feed(Received{Link: 77, Data: []byte{1}})
}

func TestMessagesBeforeHelloAreIgnored(t *testing.T) {
	p := newPuppet(t, 1, nil)
	p.feed(LinkUp{Link: 9})
	p.take()
	for k := Kind(KindHeartbeat); k < numKinds; k++ {
		p.say(9, sample(k, 1))
	}
	if got := p.take(); got != "" {
		t.Errorf("led to %s", got)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Hello)
		want   string
	}{
		"oneself":     {func(h *Hello) { h.Incarnation = 100 }, "leads back to node"},
		"major":       {func(h *Hello) { h.Major = 2 }, "one minor version apart"},
		"minor":       {func(h *Hello) { h.Minor = 7 }, "one minor version apart"},
		"older minor": {func(h *Hello) { h.Minor = 4 }, ""},
		"unlisted":    {func(h *Hello) { h.Name, h.Names = "x", []string{"n0", "n1", "x"}; h.Rank = 2 }, "add it there at the end"},
		"rank":        {func(h *Hello) { h.Names = []string{"n2", "n1", "n0"}; h.Rank = 0 }, "make the lists alike"},
		"liar":        {func(h *Hello) { h.Rank = 1 }, "does not stand in its own"},
		"no list":     {func(h *Hello) { h.Names = nil }, "does not stand in its own"},
		"longer list": {func(h *Hello) { h.Names = append(h.Names, "n3") }, ""},
		"clock ahead": {func(h *Hello) { h.Wall = 3_601_000 }, "an hour is the most"},
		"clock back":  {func(h *Hello) { h.Wall = -3_601_000 }, "an hour is the most"},
		"clock edge":  {func(h *Hello) { h.Wall = 3_600_000 }, ""},
		"clock far":   {func(h *Hello) { h.Wall = -1 << 62 }, "an hour is the most"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t, 1, nil)
			h := hello(2, 3)
			c.change(h)
			p.greet(h)
			if c.want == "" {
				p.wants("!Refuse", "!CloseLink")
			} else {
				p.wants("Refuse{From:1", c.want, "CloseLink", "Fact:refused")
			}
		})
	}
}

func TestNamesakes(t *testing.T) {
	t.Run("the first answers", func(t *testing.T) {
		p := newPuppet(t, 1, nil)
		p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
		second := p.greet(hello(2, 9))
		p.take()
		p.run(100 * time.Millisecond)
		p.wants(fmt.Sprintf("send %d ", second), "Code:duplicate name")
		if p.m.peers[2].hello.Incarnation != 3 {
			t.Error("the first was replaced")
		}
	})
	t.Run("the first is silent", func(t *testing.T) {
		p := newPuppet(t, 1, nil)
		first := p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
		p.hold[first] = true
		p.greet(hello(2, 9))
		p.run(1100 * time.Millisecond)
		p.wants("!Refuse")
		if p.m.peers[2].hello.Incarnation != 9 {
			t.Error("the first was not replaced")
		}
	})
	t.Run("the first's link is broken", func(t *testing.T) {
		p := newPuppet(t, 1, nil)
		first := p.peer(2, Heartbeat{Role: Active, Active: 2, Complete: true, Position: Position{500, 1}})
		p.feed(LinkDown{Link: first})
		if !p.m.alive(2) {
			t.Error("a broken link alone is no death")
		}
		p.greet(hello(2, 9))
		if p.m.alive(2) || p.m.peers[2].hello.Incarnation != 9 {
			t.Error("the first is dead at once when another takes its name")
		}
	})
	t.Run("one's own name, younger", func(t *testing.T) {
		p := newPuppet(t, 1, nil)
		p.now = Time(time.Second)
		p.feed(Tick{})
		h := hello(1, 9)
		h.Uptime = time.Hour
		p.greet(h)
		p.wants("Exit{Fault:true")
	})
	t.Run("one's own name, older", func(t *testing.T) {
		p := newPuppet(t, 1, nil)
		p.run(time.Second)
		p.greet(hello(1, 9))
		p.wants("Refuse{From:1 Code:duplicate name")
	})
	t.Run("told that the name is taken", func(t *testing.T) {
		p := newPuppet(t, 1, nil)
		id := p.greet(hello(2, 3))
		p.say(id, &Refuse{From: 2, Code: RefusedDuplicate, Text: "taken"})
		p.wants("Exit{Fault:true Why:taken}")
	})
}

func TestTwoLinksToOnePeer(t *testing.T) {
	for _, c := range []struct{ first, second, wantSecond bool }{
		{true, false, true},  // n1 dialled the first, n2 the second: the lower priority's is kept
		{false, true, false}, // the other way round
		{true, true, true},   // the newer of two of one side
		{false, false, true},
	} {
		p := newPuppet(t, 1, nil)
		for i, dialled := range []bool{c.first, c.second} {
			p.feed(LinkUp{Link: LinkID(i + 1), Dialled: dialled})
			p.say(LinkID(i+1), hello(2, 3))
		}
		if got := p.m.peers[2].link == 2; got != c.wantSecond {
			t.Errorf("dialled by n1 %v, then %v: the second is kept: %v", c.first, c.second, got)
		}
	}
}

func TestActivateThatDoesNotCount(t *testing.T) {
	ask := &Prepare{ID: 5, Position: Position{500, 10}, Hash: 7}
	ok := &Activate{ID: 5, Position: Position{500, 10}, Why: WhyOperator}
	for name, f := range map[string]func(p *puppet, id LinkID){
		"never asked":      func(p *puppet, id LinkID) { p.say(id, ok) },
		"another try":      func(p *puppet, id LinkID) { p.say(id, ask); a := *ok; a.ID = 4; p.say(id, &a) },
		"another position": func(p *puppet, id LinkID) { p.say(id, ask); a := *ok; a.Position.Seq = 9; p.say(id, &a) },
		"another state":    func(p *puppet, id LinkID) { a := *ask; a.Hash = 8; p.say(id, &a); p.say(id, ok) },
		"too late":         func(p *puppet, id LinkID) { p.say(id, ask); p.run(1100 * time.Millisecond); p.say(id, ok) },
		"while waking": func(p *puppet, id LinkID) {
			p.say(id, ask)
			p.now = p.now.Add(700 * time.Millisecond)
			p.say(id, ok)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, id := followingPuppet(t)
			f(p, id)
			p.wants("!BecomeActive")
		})
	}
	p, id := followingPuppet(t)
	p.say(id, ask)
	p.wants("Prepared{ID:5 OK:true}")
	a := *ok
	a.Highest = 12345
	p.say(id, &a)
	p.wants("BecomeActive{Heard:12345 Gap:0}", "Why:hand-off, operator")
}

// A successor answers when it is where the active is.
func TestPreparedWaitsForThePosition(t *testing.T) {
	p, id := followingPuppet(t)
	p.say(id, &Prepare{ID: 5, Position: Position{500, 11}, Hash: 7})
	p.wants("!Prepared{", "!HashState")
	p.say(id, &Stream{ID: 1, Epoch: 500, First: 11, Events: encodeRun([]string{"x"})})
	p.wants("Prepared{ID:5 OK:true}")
}

func TestPromotionAfterALossLeavesAGap(t *testing.T) {
	p, id := followingPuppet(t)
	p.peer(2, Heartbeat{Role: Standby, Complete: true, Active: Nobody, Highest: 999})
	p.feed(LinkDown{Link: id})
	p.feed(DialFailed{Peer: 0, Refused: true})
	p.run(50 * time.Millisecond)
	p.wants("BecomeActive{Heard:999 Gap:8388608}")
}

func TestClosedLinkAloneIsNoDeath(t *testing.T) {
	p, id := followingPuppet(t)
	p.peer(2, Heartbeat{Role: Standby, Complete: true, Active: Nobody})
	p.feed(LinkDown{Link: id})
	p.feed(DialFailed{Peer: 0})
	p.run(900 * time.Millisecond)
	p.wants("!BecomeActive")
	p.run(200 * time.Millisecond)
	p.wants("BecomeActive")
}

// Rule 2 and rule 5 together: a node of a higher rank with half a state waits
// for one that is complete.
func TestHalfAStateWaitsForACompleteOne(t *testing.T) {
	p := newPuppet(t, 0, nil)
	p.peer(1, Heartbeat{Role: Joining, Active: Nobody})
	p.peer(2, Heartbeat{Role: Standby, Complete: true, Active: Nobody, Position: Position{500, 1}})
	p.run(3 * time.Second)
	p.wants("!BecomeActive", "!Fetch")
}

// A node that must begin with half a snapshot, because nobody better is alive,
// takes what the owner of the whole has when that one comes back.
func TestReignOfHalfASnapshot(t *testing.T) {
	p := newPuppet(t, 1, func(c *Config) { c.StartGrace = 1100 * time.Millisecond })
	id := p.peer(0, Heartbeat{Role: Active, Complete: true, Active: 0, ActiveEpoch: 500, Position: Position{500, 10}})
	p.say(id, &Chunk{ID: 1, Position: Position{500, 10}, First: true, Events: encodeRun([]string{"clear"})})
	p.feed(LinkDown{Link: id})
	p.feed(DialFailed{Peer: 0, Refused: true})
	p.run(1200 * time.Millisecond)
	p.wants("From:joining To:active")
	id = p.peer(0, Heartbeat{Role: Joining, Complete: true, Active: 1, ActiveEpoch: p.epoch, Position: Position{500, 10}})
	p.take()
	p.say(id, &Follow{ID: 1, Position: Position{500, 10}, Whole: true})
	p.wants("Diverged{ID:1}")
	p.say(id, &Follow{ID: 2}) // and an empty state does not follow by the log
	p.wants("!Resume", "Wake")
}

// Half a state is offered as well, and merged; its position proves nothing.
func TestHalfAStateIsOffered(t *testing.T) {
	p, id := activePuppet(t, nil)
	p.say(id, &Follow{ID: 2, Position: Position{300, 4}})
	p.wants("Diverged{ID:2}")
	p.say(id, &Offer{ID: 3, Position: Position{300, 4}})
	p.say(id, &OfferChunk{ID: 3, Last: true, Events: encodeRun([]string{"clear"})})
	p.wants("Merged{ID:3}")
	if p.m.lineage.covers(p.m.pos, Position{300, 4}) {
		t.Error("half a state is on the lineage as if it were whole")
	}

	p = newPuppet(t, 1, nil)
	id = p.peer(0, Heartbeat{Role: Active, Complete: true, Active: 0, ActiveEpoch: 500, Position: Position{500, 10}})
	p.say(id, &Chunk{ID: 1, Position: Position{500, 10}, First: true, Events: encodeRun([]string{"clear"})})
	p.say(id, &Lost{ID: 1})
	p.run(200 * time.Millisecond)
	p.wants("Follow{ID:2 Position:500/10 Lineage:[] Whole:false Anew:false}")
	p.say(id, &Diverged{ID: 2})
	p.wants("Offer{ID:3 Adopt:false Active:false Whole:false")
	p.say(id, &Merged{ID: 3})
	p.wants("Follow{ID:4 Position:0/0 Lineage:[] Whole:false Anew:true}")
}

// A stopping node is the last resort, but its state is fetched.
func TestStoppingNodeIsTheLast(t *testing.T) {
	p := newPuppet(t, 1, nil)
	p.peer(0, Heartbeat{Role: Standby, Complete: true, Stopping: true, Active: Nobody, Position: Position{500, 1}})
	p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
	p.run(100 * time.Millisecond)
	p.wants("Fetch{ID:1", "!BecomeActive")
	p.run(900 * time.Millisecond)
	p.wants("Fact:went on behind", "BecomeActive") // rule 5: at most 1 s
}

// Rule 5 with a state that does not descend from this one's: it activates
// frozen, and serves once that state was offered and merged, or after 1 s.
func TestStateThatIsAheadAndApart(t *testing.T) {
	for _, offers := range []bool{true, false} {
		p, id := followingPuppet(t)
		other := p.peer(2, Heartbeat{Role: Standby, Complete: true, Active: Nobody, Position: Position{600, 3}})
		p.feed(LinkDown{Link: id})
		p.feed(DialFailed{Peer: 0, Refused: true})
		p.run(50 * time.Millisecond)
		p.wants("Fetch{ID:2 Position:500/10")
		p.say(other, &Diverged{ID: 2})
		p.wants("Freeze{}", "BecomeActive", "RoleChanged{From:standby To:active", "!Unfreeze")
		if !offers {
			p.run(900 * time.Millisecond)
			p.wants("!Unfreeze")
			p.run(200 * time.Millisecond)
			p.wants("Fact:went on behind", "Unfreeze")
			continue
		}
		p.say(other, &Follow{ID: 1, Position: Position{600, 3}, Whole: true})
		p.wants("Diverged{ID:1}")
		p.say(other, &Offer{ID: 2, Whole: true, Position: Position{600, 3}, Highest: 77777})
		p.say(other, &OfferChunk{ID: 2, Last: true, Events: encodeRun([]string{"clear"})})
		p.wants("NewReign{Heard:77777 Gap:0}", "MergeOffer", "Merged{ID:2}", "Unfreeze")
		p.say(other, &Follow{ID: 3, Position: Position{600, 3}, Whole: true})
		p.wants("!Diverged")
	}
}

// A serving active opens a new epoch only when a peer that follows it, or that
// follows nobody, holds a state of a later one.
func TestLaterEpochAtAPeer(t *testing.T) {
	for active, want := range map[Rank]bool{1: true, Nobody: true, 0: false} {
		p := newPuppet(t, 1, func(c *Config) { c.StartGrace = 1100 * time.Millisecond })
		id := p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
		p.run(1200 * time.Millisecond)
		p.wants("To:active")
		p.says(id, Heartbeat{Role: Standby, Active: active, Position: Position{900_000, 1}})
		if got := strings.Contains(p.take(), "NewReign"); got != want {
			t.Errorf("a peer that follows %d has a later epoch: new reign %v, want %v", active, got, want)
		}
	}
}

// Offers are taken by the highest active only, and by none that yields or wakes.
func TestOfferIsRefusedBelowAHigherActive(t *testing.T) {
	p := newPuppet(t, 1, func(c *Config) { c.StartGrace = 1100 * time.Millisecond })
	low := p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
	p.run(1200 * time.Millisecond)
	p.wants("To:active")
	p.peer(0, Heartbeat{Role: Active, Active: 0, Position: Position{700, 1}})
	p.wants("Freeze{}", "Offer{ID:")
	p.say(low, &Offer{ID: 9, Active: true, Position: Position{800, 1}})
	p.wants("OfferRefused{ID:9}")
}

// A higher token heard from a peer raises an active's at once.
func TestActiveHearsTokens(t *testing.T) {
	p := newPuppet(t, 1, func(c *Config) { c.StartGrace = 1100 * time.Millisecond })
	id := p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
	p.run(1200 * time.Millisecond)
	p.wants("To:active")
	p.says(id, Heartbeat{Role: Joining, Active: Nobody, Highest: 1 << 40})
	p.beat(id)
	p.wants("HearToken{Token:1099511627776}")
	p.run(100 * time.Millisecond)
	p.wants("!HearToken")
}

// activePuppet is an active, n1, with a played n2 that follows it in step.
func activePuppet(t *testing.T, change func(*Config)) (*puppet, LinkID) {
	p := newPuppet(t, 1, func(c *Config) {
		c.StartGrace = 1100 * time.Millisecond
		if change != nil {
			change(c)
		}
	})
	id := p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
	p.run(1200 * time.Millisecond)
	p.wants("To:active")
	p.says(id, Heartbeat{Role: Standby, Complete: true, Synced: true, Active: 1, ActiveEpoch: p.epoch})
	p.say(id, &Follow{ID: 1, Position: p.m.pos, Whole: true})
	p.say(id, &Ack{ID: 1, Position: p.m.pos})
	p.take()
	return p, id
}

// The winner of two actives, while the loser's state comes in.
func TestTakingAnActivesState(t *testing.T) {
	whole := encodeRun([]string{"clear"})
	begin := func(t *testing.T) (*puppet, LinkID) {
		p, id := activePuppet(t, nil)
		p.says(id, Heartbeat{Role: Active, Complete: true, Active: 2, ActiveEpoch: 700, Position: Position{700, 3}})
		p.wants("Fact:two actives", "!Freeze", "!Offer")
		p.say(id, &Offer{ID: 4, Active: true, Whole: true, Position: Position{700, 3}, Highest: 5000})
		p.wants("HearToken{Token:5000}", "Freeze{}")
		p.say(id, &OfferChunk{ID: 4, Events: whole})
		p.wants("StashOffer", "!MergeOffer")
		return p, id
	}
	t.Run("all of it", func(t *testing.T) {
		p, id := begin(t)
		p.say(id, &OfferChunk{ID: 3, Last: true})
		p.wants("!StashOffer") // of another offer
		p.say(id, &OfferChunk{ID: 4, Last: true})
		p.wants("NewReign{Heard:5000 Gap:0}", "Why:merge", "MergeOffer{Peer:2 ID:4}", "Merged{ID:4}", "Unfreeze")
		if !p.m.lineage.covers(p.m.pos, Position{700, 3}) {
			t.Error("the loser's state is not on the lineage")
		}
		if p.m.lineage.covers(Position{p.m.pos.Epoch, p.m.pos.Seq - 1}, Position{700, 3}) {
			t.Error("the loser's state is on the lineage before the merge was complete")
		}
	})
	t.Run("the link breaks", func(t *testing.T) {
		p, id := begin(t)
		p.feed(LinkDown{Link: id})
		p.wants("DropOffer{Peer:2 ID:4}", "Unfreeze", "!NewReign")
	})
	t.Run("broken", func(t *testing.T) {
		p, id := begin(t)
		p.say(id, &OfferChunk{ID: 4, Last: true, Events: whole[:3]})
		p.wants("DropOffer", "Unfreeze", "!MergeOffer")
	})
	t.Run("taken back", func(t *testing.T) {
		p, id := begin(t)
		p.say(id, &Lost{ID: 4})
		p.wants("DropOffer", "Unfreeze", "!MergeOffer")
	})
	t.Run("offered anew", func(t *testing.T) {
		p, id := begin(t)
		p.say(id, &Offer{ID: 5, Active: true, Whole: true, Position: Position{700, 4}})
		p.wants("DropOffer{Peer:2 ID:4}", "!Unfreeze")
		p.say(id, &OfferChunk{ID: 5, Last: true, Events: whole})
		p.wants("Merged{ID:5}", "Unfreeze")
	})
	t.Run("slow", func(t *testing.T) {
		p, id := begin(t)
		p.run(4400 * time.Millisecond)
		p.wants("!Unfreeze")
		p.run(200 * time.Millisecond)
		p.wants("Unfreeze", "!DropOffer") // it serves on, and merges when all is here
		p.say(id, &OfferChunk{ID: 4, Last: true, Events: whole})
		p.wants("Merged{ID:4}")
	})
	t.Run("a higher active appears", func(t *testing.T) {
		p, _ := begin(t)
		p.peer(0, Heartbeat{Role: Active, Active: 0, Position: Position{900, 1}})
		p.wants("OfferRefused{ID:4}", "DropOffer", "Offer{ID:1", "!Unfreeze")
	})
}

// The loser, while its state is on its way.
func TestOfferingTheState(t *testing.T) {
	begin := func(t *testing.T) (*puppet, LinkID) {
		p, _ := activePuppet(t, nil)
		id := p.peer(0, Heartbeat{Role: Active, Active: 0, Position: Position{900, 1}, Highest: 6000})
		p.wants("Freeze{}", "Offer{ID:1 Adopt:false Active:true Whole:true", "Wake")
		p.feed(Pull{Link: id, Max: 1000})
		p.wants("TakeSnapshot", "OfferChunk{ID:1 Last:true")
		return p, id
	}
	t.Run("merged", func(t *testing.T) {
		p, id := begin(t)
		p.say(id, &Merged{ID: 9})
		p.wants("!BecomeStandby")
		p.say(id, &Merged{ID: 1})
		p.wants("BecomeStandby", "To:standby", "Why:two actives", "Moved{To:0}", "Follow{ID:2", "!Unfreeze")
	})
	t.Run("refused", func(t *testing.T) {
		p, id := begin(t)
		p.say(id, &OfferRefused{ID: 1})
		p.wants("Unfreeze", "!NewReign", "!Offer{")
		p.run(300 * time.Millisecond)
		p.wants("Freeze{}", "Offer{ID:2")
	})
	t.Run("the link breaks", func(t *testing.T) {
		p, id := begin(t)
		p.feed(LinkDown{Link: id})
		p.wants("NewReign{Heard:6000 Gap:8388608}", "Why:offer broken off", "Unfreeze")
	})
	t.Run("no answer", func(t *testing.T) {
		p, _ := begin(t)
		p.run(2400 * time.Millisecond)
		p.wants("!Unfreeze")
		p.run(200 * time.Millisecond)
		p.wants("NewReign", "Unfreeze")
	})
	t.Run("the other gives up", func(t *testing.T) {
		p, id := begin(t)
		p.says(id, Heartbeat{Role: Standby, Active: Nobody, Complete: true, Position: Position{900, 1}})
		p.wants("NewReign", "Unfreeze", "!BecomeStandby")
	})
}

// What is parked is answered after the freeze's bound at the latest, be the
// successor heard or not.
func TestParkedAreToldAtTheBound(t *testing.T) {
	p, id := activePuppet(t, nil)
	p.feed(HandoffRequested{To: 2})
	p.wants("Freeze{}", "Prepare{ID:1")
	p.say(id, &Prepared{ID: 1, OK: true})
	p.wants("Activate{ID:1", "BecomeStandby", "To:standby", "!Unfreeze", "!Moved")
	p.run(4400 * time.Millisecond) // n2 goes on saying that it hears n1: nobody may be promoted
	p.wants("!Moved", "!BecomeActive")
	p.run(200 * time.Millisecond)
	p.wants("Moved{To:-1}")
}

func TestHandoffThatFails(t *testing.T) {
	for name, f := range map[string]func(p *puppet, id LinkID){
		"refused":     func(p *puppet, id LinkID) { p.say(id, &Prepared{ID: 1}) },
		"no answer":   func(p *puppet, id LinkID) { p.run(600 * time.Millisecond) },
		"another try": func(p *puppet, id LinkID) { p.say(id, &Prepared{ID: 9, OK: true}); p.run(600 * time.Millisecond) },
		"link down":   func(p *puppet, id LinkID) { p.feed(LinkDown{Link: id}) },
		"state moves": func(p *puppet, id LinkID) { p.feed(Events{Run: encodeRun([]string{"x"})}) },
		"active pauses": func(p *puppet, id LinkID) {
			p.now = p.now.Add(700 * time.Millisecond)
			p.say(id, &Prepared{ID: 1, OK: true})
			p.run(100 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, id := activePuppet(t, nil)
			p.feed(HandoffRequested{To: Nobody})
			f(p, id)
			p.wants("Unfreeze", "!Activate", "!BecomeStandby", "Fact:hand-off ended")
			if p.m.role != Active || p.m.frozen != 0 {
				t.Errorf("%v, frozen %d", p.m.role, p.m.frozen)
			}
		})
	}
}

func TestTakeBackIsNotForLowerRanksOrWhenOff(t *testing.T) {
	p, id := activePuppet(t, nil)
	p.say(id, &TakeBack{})
	p.run(50 * time.Millisecond)
	p.wants("!Prepare")
	high := p.peer(0, Heartbeat{Role: Standby, Complete: true, Synced: true, Active: 1, ActiveEpoch: p.epoch})
	p.say(high, &TakeBack{}) // not in step
	p.run(50 * time.Millisecond)
	p.wants("!Prepare")
	p.say(high, &Follow{ID: 1, Position: p.m.pos, Whole: true})
	p.say(high, &Ack{ID: 1, Position: p.m.pos})
	p.m.damping.off = true
	p.say(high, &TakeBack{})
	p.wants("!Prepare")
	p.m.damping.off = false
	p.say(high, &TakeBack{})
	p.wants("Freeze{}", "Prepare{")
}

// Acknowledgements open the gate and empty the ended set only as far as they can be true.
func TestAcknowledgements(t *testing.T) {
	p, id := activePuppet(t, func(c *Config) { c.Ack = true })
	at := p.m.pos
	p.feed(Events{Run: encodeRun([]string{"a", "b"}), Highest: 8})
	p.wants("!ReleaseGate")
	for _, m := range []*Ack{
		{ID: 7, Position: Position{at.Epoch, at.Seq + 2}}, // another stream
		{ID: 1, Position: Position{at.Epoch, at.Seq + 3}}, // ahead of the active
		{ID: 1, Position: Position{at.Epoch + 1, 1}},      // of no reign
	} {
		p.say(id, m)
		p.wants("!ReleaseGate")
	}
	p.say(id, &Ack{ID: 1, Position: Position{at.Epoch, at.Seq + 1}})
	p.wants(fmt.Sprintf("ReleaseGate{Position:%d/%d}", at.Epoch, at.Seq+1))
	p.run(300 * time.Millisecond)
	p.wants("!TrimEnded") // n0 has acknowledged nothing
	high := p.peer(0, Heartbeat{Role: Standby, Complete: true, Synced: true, Active: 1, ActiveEpoch: p.epoch})
	p.say(high, &Follow{ID: 1, Position: p.m.pos, Whole: true})
	p.say(high, &Ack{ID: 1, Position: Position{at.Epoch, at.Seq + 2}})
	p.wants(fmt.Sprintf("ReleaseGate{Position:%d/%d}", at.Epoch, at.Seq+2))
	p.run(300 * time.Millisecond)
	p.wants(fmt.Sprintf("TrimEnded{Position:%d/%d}", at.Epoch, at.Seq+1)) // the least of both
	p.feed(Events{Run: encodeRun([]string{"c"}), Highest: 8})
	p.take()
	p.feed(LinkDown{Link: id})
	p.feed(LinkDown{Link: high})
	p.wants("Fact:acknowledging alone", fmt.Sprintf("ReleaseGate{Position:%d/%d}", at.Epoch, at.Seq+3))
}

func TestMayServeNotAfterALateTick(t *testing.T) {
	p := newPuppet(t, 1, func(c *Config) { c.StartGrace = 1100 * time.Millisecond })
	p.run(1200 * time.Millisecond)
	if !p.m.MayServe(p.now) || !p.m.MayServe(p.now.Add(500*time.Millisecond)) || p.m.MayServe(p.now.Add(600*time.Millisecond)) {
		t.Error("an active serves until its tick is late by half the suspicion time")
	}
}

func TestConfigValidate(t *testing.T) {
	bad := Config{Names: []string{"a", "a", ""}, Rank: 5, LogBytes: 1, TakeBackDelay: -1}
	err := bad.Validate()
	for _, x := range []string{"rank 5", "twice", "0 bytes", "incarnation", "heartbeat", "grace", "take-back", "log bytes"} {
		if err == nil || !strings.Contains(err.Error(), x) {
			t.Errorf("%q is missing in %v", x, err)
		}
	}
}

func TestNames(t *testing.T) {
	for w := Why(1); w < numWhys; w++ {
		if w.String() == "" {
			t.Errorf("why %d has no name", w)
		}
	}
	for f := Fact(1); f < numFacts; f++ {
		if f.String() == "" {
			t.Errorf("fact %d has no name", f)
		}
	}
	for r := Refusal(1); r < numRefusals; r++ {
		if r.String() == "" {
			t.Errorf("refusal %d has no name", r)
		}
	}
}

// The road of every event on the active does not allocate.
func TestEventsDoNotAllocate(t *testing.T) {
	p := newPuppet(t, 1, func(c *Config) { c.StartGrace = 1100 * time.Millisecond })
	id := p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
	p.run(1200 * time.Millisecond)
	p.say(id, &Follow{ID: 1, Position: p.m.pos, Whole: true})
	p.feed(Pull{Link: id, Max: 1 << 16})
	p.say(id, &Ack{ID: 1, Position: p.m.pos})
	in := Input(&Events{Run: encodeRun([]string{"grant k1 8 x"}), Highest: 8})
	var act Actions
	if n := testing.AllocsPerRun(1000, func() {
		p.m.Step(p.now, *in.(*Events), &act)
		act.Reset()
	}); n > 1 {
		t.Errorf("%v allocations for a batch of events", n)
	}
}

// BenchmarkEvents is the active's road of a batch of 16 events with one
// follower that takes and acknowledges it.
func BenchmarkEvents(b *testing.B) {
	p := newPuppet(nil, 1, func(c *Config) { c.StartGrace, c.LogBytes = 1100*time.Millisecond, 1<<20 })
	id := p.peer(2, Heartbeat{Role: Joining, Active: Nobody})
	p.run(1200 * time.Millisecond)
	p.say(id, &Follow{ID: 1, Position: p.m.pos, Whole: true})
	var run, wire []byte
	for range 16 {
		run = AppendEvent(run, make([]byte, 60))
	}
	var act Actions
	step := func(in Input) {
		p.m.Step(p.now, in, &act)
		for _, a := range act.List {
			if s, ok := a.(Send); ok {
				wire = AppendMessage(wire[:0], s.Msg)
			}
		}
		act.Reset()
	}
	b.ReportAllocs()
	for b.Loop() {
		step(Events{Run: run, Highest: 8})
		step(Pull{Link: id, Max: 1 << 16})
		step(Received{Link: id, Data: AppendMessage(wire[:0], &Ack{ID: 1, Position: p.m.pos})})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(16*b.N), "ns/event")
}

// A joining node of a longer list hears an active that this node cannot know.
func TestActiveOfNoRank(t *testing.T) {
	p := newPuppet(t, 1, nil)
	p.peer(2, Heartbeat{Role: Joining, Active: 7, ActiveEpoch: 5})
	p.run(100 * time.Millisecond)
	if r, _ := p.m.Pointer(); r > 2 {
		t.Errorf("sends clients to node %d of 3", r)
	}
}
