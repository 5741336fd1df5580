package replica

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The token clock, in half-microseconds, by the wall clock of this node.
func (n *node) tokenClock() uint64 {
	return uint64((n.w.now + n.w.clocks[n.rank] + 1000*time.Hour) / (500 * time.Nanosecond))
}

func (n *node) nextToken() Token {
	n.counter = max(n.counter+1, n.tokenClock())
	t := Token(n.counter<<3 | uint64(n.rank))
	n.keepMark(t)
	if n.w.check != nil {
		n.w.check.token(n, t)
	}
	return t
}

// keepMark writes a mark a second ahead, as a data directory keeps it.
func (n *node) keepMark(t Token) { n.mark = max(n.mark, t+16<<20) }

func (n *node) hearMark(t Token) {
	n.counter = max(n.counter, uint64(t)>>3)
	if n.w.check != nil {
		n.w.check.heard(n, t)
	}
}

// begin takes the first token of a reign.
func (n *node) begin(heard, gap Token) {
	if n.w.broken != reuseTokens {
		n.hearMark(heard)
		n.counter += uint64(gap) >> 3
	} else {
		n.counter = 0
	}
	e := n.nextToken()
	if n.w.check != nil {
		n.w.check.epoch(n, e)
	}
	n.state.fold("epoch")
	n.feed(Activated{Epoch: Epoch(e), Run: encodeRun([]string{fmt.Sprintf("epoch %d", e)})})
	if n.up {
		for t := range n.state.ended {
			n.endedAt[t] = n.m.pos
		}
	}
}

// apply folds another node's events.
func (n *node) apply(events []string) {
	for _, e := range events {
		n.state.fold(e)
		var t Token
		var k, x string
		if c, _ := fmt.Sscanf(e, "grant %s %d %s", &k, &t, &x); c == 3 {
			n.hearMark(t)
		}
	}
}

// commit folds the active's own events and tells the machine.
func (n *node) commit(events ...string) {
	for i, e := range events {
		n.state.fold(e)
		at := n.m.pos
		at.Seq += Seq(i + 1)
		var t Token
		var k string
		if c, _ := fmt.Sscanf(e, "end %s %d", &k, &t); c == 2 {
			n.ended(t, at)
		} else if c, _ := fmt.Sscanf(e, "ended %d", &t); c == 1 {
			n.ended(t, at)
		}
	}
	n.feed(Events{Run: encodeRun(events), Highest: Token(n.counter<<3 | 7)})
}

func (n *node) ended(t Token, at Position) {
	n.endedAt[t] = at
	if n.w.check != nil {
		n.w.check.end(t, at)
	}
}

func (n *node) trim(upto Position) {
	var events []string
	for _, t := range slices.Sorted(maps.Keys(n.state.ended)) {
		if at, ok := n.endedAt[t]; !ok || !upto.Less(at) || n.w.broken == trimTooEarly {
			events = append(events, fmt.Sprintf("trim %d", t))
			delete(n.endedAt, t)
		}
	}
	if len(events) > 0 {
		n.commit(events...)
	}
}

func (n *node) mergeOffer(a MergeOffer) {
	l := n.stash[a.Peer]
	delete(n.stash, a.Peer)
	if l == nil {
		l = newToy()
	}
	w := newToy()
	for c, first := uint64(0), true; first || c != 0; first = false {
		var piece []string
		piece, c = n.state.snapshot(c)
		for _, e := range piece {
			w.fold(e)
		}
	}
	if events := w.merge(l, n.w.broken); len(events) > 0 {
		n.commit(events...)
	}
	for _, k := range n.state.keys() {
		n.grantNext(k)
	}
	n.feed(OfferMerged(a))
}

// grantNext gives a free key to the first that waits.
func (n *node) grantNext(key string) {
	if _, taken := n.state.held[key]; taken || len(n.state.queue[key]) == 0 {
		return
	}
	x := n.state.queue[key][0]
	n.grant(key, x, n.waiting[key+" "+x])
	delete(n.waiting, key+" "+x)
}

func (n *node) grant(key, ticket string, r request) {
	t := n.nextToken()
	n.commit(fmt.Sprintf("grant %s %d %s", key, t, ticket))
	if n.w.check != nil {
		n.w.check.grant(n, t)
	}
	if r.reply != nil {
		n.reply(r, answer{code: "granted", token: t})
	}
}

// request is what a client's message comes to.
func (n *node) request(r request) {
	if !n.up {
		return
	}
	if n.paused {
		n.requests = append(n.requests, r)
		return
	}
	if n.w.check != nil {
		n.w.check.request(n, r)
	}
	if n.w.broken != ignoreWaking && n.time().Sub(n.m.waking.lastTick) > n.m.pauseBound() {
		n.feed(Tick{})
	}
	switch {
	case n.m.role == Active && (n.m.frozen == 0 || n.w.broken == ignoreFreeze), n.lapsed && n.w.broken == serveAfterActivate:
		n.serve(r)
	case n.m.role == Active || n.lapsed:
		n.parked = append(n.parked, r)
	default:
		n.answer(r, answer{code: "moved", to: n.m.pointer()})
	}
}

func (n *node) serve(r request) {
	if n.lapsed { // sabotage: granted after Activate was sent, and replicated to nobody
		if r.op == "acquire" {
			t := n.nextToken()
			if n.w.check != nil {
				n.w.check.grant(n, t)
			}
			n.answer(r, answer{code: "granted", token: t})
		}
		return
	}
	g, taken := n.state.held[r.key]
	switch {
	case r.op == "release" && taken && g.token == r.token:
		n.commit(fmt.Sprintf("end %s %d", r.key, r.token))
		n.reply(r, answer{code: "released", token: r.token})
		n.grantNext(r.key)
	case r.op == "release":
		n.reply(r, answer{code: "unknown", token: r.token})
	case taken && g.ticket == r.ticket:
		n.reply(r, answer{code: "granted", token: g.token})
	case slices.Contains(n.state.queue[r.key], r.ticket):
		n.wait(r)
	case !taken && len(n.state.queue[r.key]) == 0:
		n.grant(r.key, r.ticket, r)
	default:
		n.wait(r)
		n.commit("wait " + r.key + " " + r.ticket)
	}
}

func (n *node) wait(r request) {
	name := r.key + " " + r.ticket
	if old, ok := n.waiting[name]; ok {
		n.answer(old, answer{code: "cancelled"})
	}
	n.waiting[name] = r
}

// reply answers, through the gate where replies are held for an acknowledgement.
func (n *node) reply(r request, a answer) {
	if n.w.cfg.Ack && n.m.gate.open.Less(n.m.pos) && n.w.broken != openGateAtOnce {
		n.gated = append(n.gated, gatedReply{n.m.pos, r, a})
		return
	}
	n.answer(r, a)
}

func (n *node) releaseGate(upto Position) {
	var out []gatedReply
	n.gated = slices.DeleteFunc(n.gated, func(g gatedReply) bool {
		if upto.Less(g.at) {
			return false
		}
		out = append(out, g)
		return true
	})
	for _, g := range out {
		n.answer(g.r, g.a)
	}
}

func (n *node) answer(r request, a answer) {
	if n.w.check != nil {
		n.w.check.answer(n, r, a)
	}
	boot := n.boot
	n.w.after(time.Millisecond, func() {
		if n.boot == boot {
			r.reply(a)
		}
	})
}

func (n *node) serveParked() {
	if n.w.broken == loseParked {
		n.parked = nil
		return
	}
	for len(n.parked) > 0 && !n.frozen && n.m.role == Active && n.m.reigning == 0 {
		r := n.parked[0]
		n.parked = n.parked[1:]
		n.serve(r)
	}
}

// moved sends everyone who waits to the next active.
func (n *node) moved(to Rank) {
	all := n.parked
	for _, k := range slices.Sorted(maps.Keys(n.waiting)) {
		all = append(all, n.waiting[k])
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.id, b.id) })
	n.parked, n.waiting = nil, map[string]request{}
	for _, r := range all {
		n.answer(r, answer{code: "moved", to: to})
	}
}
