//go:build faults

package locks_test

var faults = []fault{
	// Order and exclusion.
	{"the last in line is served first", "handoff.go", "id := k.qhead\n", "id := k.qtail\n"},
	{"the second in line is served first", "handoff.go", "id := k.qhead\n", "id := k.qhead\n" +
		"if n := t.claims.at(id).next; n != 0 {\nid = n\n}\n"},
	{"a shared acquire passes an exclusive one that waits", "acquire.go",
		"case k.qhead == 0 && t.fits(k, c.Flags&Shared):", "case t.fits(k, c.Flags&Shared):"},
	{"an exclusive acquire joins shared holders", "acquire.go", "return shared != 0 && k.holders", "return k.holders"},
	{"a shared acquire joins an exclusive holder", "acquire.go", "k.holders < MaxHolders && t.sharedNow(k)", "k.holders < MaxHolders"},
	{"a semaphore has a slot too many", "acquire.go", "return k.holders < k.slots", "return k.holders <= k.slots"},
	{"a slot leaks", "holders.go", "e.holders--\n", "if e.slots < 3 {\ne.holders--\n}\n"},
	{"slots are not compared", "acquire.go", "case k.slots != max(c.Slots, 1):", "case k.slots > max(c.Slots, 1):"},
	{"TRY waits", "acquire.go", "case c.Flags&Try != 0:", "case c.Flags&Try != 0 && c.Wait == 0:"},
	{"who leaves a line lets nobody in", "handoff.go", "t.dequeue(now, id, why, fx)\n\treturn t.serve(now, eid, at, fx)",
		"t.dequeue(now, id, why, fx)\n\treturn t.entries.at(eid).root != 0 || t.serve(now, eid, at, fx)"},

	// Tokens.
	{"a hand-over keeps the token", "handoff.go", "Token: t.nextToken(now), Lease: c.leaseTime()", "Token: t.token(t.counter), Lease: c.leaseTime()"},
	{"tokens do not follow the clock", "table.go", "max(t.counter+1, t.clock(now))", "t.counter+1"},
	{"tokens stand still within one tick of the clock", "table.go", "max(t.counter+1, t.clock(now))", "max(t.counter, t.clock(now))"},
	{"tokens forget the rank", "table.go", "Token(n<<3 | uint64(t.cfg.Rank))", "Token(n << 3)"},
	{"a token of another key releases this one", "holders.go", "c.id == uint64(token) && c.entry == eid", "c.id == uint64(token)"},

	// Deadlines.
	{"a deadline is due a moment late", "decide.go", "t.deadlines.next() <= due", "t.deadlines.next() < due"},
	{"a request does not look at what is due", "handoff.go", "if t.deadlines.next() > due {\n\t\treturn true", "if t.deadlines.next() >= 0 {\n\t\treturn true"},
	{"a lease that ends now is not over for a request", "handoff.go", "if id == 0 || t.claims.at(id).end() > due {", "if id == 0 || t.claims.at(id).end() >= due {"},
	{"a wait at the head that ends now is not over for a request", "handoff.go", "if q != 0 && t.claims.at(q).end() <= due", "if q != 0 && t.claims.at(q).end() < due"},
	{"a late sweep grants to one who had given up", "handoff.go", "case c.end() < freed:", "case c.end() < 0:"},
	{"a late sweep passes over one who still waited", "handoff.go", "case c.end() < freed:", "case c.end() <= now:"},
	{"at one instant waits end before leases", "deadlines.go", "if c.state == waiting {", "if c.state == holding {"},
	{"the heap of deadlines overlooks a child", "deadlines.go", "min(4, h.n-first)", "min(3, h.n-first)"},
	{"a holder whose lease changed keeps its place among holders", "holders.go", "if e.holders == 1 {\n\t\treturn\n", "if e.holders > 0 {\n\t\treturn\n"},
	{"the lease runs from the request, not from the grant", "apply.go", "c.state, c.id, c.since = holding, uint64(e.Token), now\n\tc.deadline = now.Add(e.Lease)",
		"c.deadline = max(c.since, 1).Add(e.Lease)\n\tif c.since == 0 {\n\t\tc.deadline = now.Add(e.Lease)\n\t}\n\tc.state, c.id, c.since = holding, uint64(e.Token), now"},
	{"the wait goes on after the grant", "apply.go", "now\n\tc.deadline = now.Add(e.Lease)\n\tt.setDeadline(at.claim)\n\tt.addHolder",
		"now\n\tif c.heap == 0 {\n\t\tc.deadline = now.Add(e.Lease)\n\t}\n\tt.setDeadline(at.claim)\n\tt.addHolder"},
	{"an extension leaves the old deadline in the heap", "apply.go", "c.deadline = now.Add(e.Lease)\n\t\tt.setDeadline(at.claim)\n", "c.deadline = now.Add(e.Lease)\n"},
	{"a lease of 0 ends at once", "acquire.go", "if c.Lease == 0 {", "if c.Lease < 0 {"},
	{"a wait of 0 ends at once", "apply.go", "if e.Wait > 0 {", "if e.Wait >= 0 {"},

	// Tickets and sessions.
	{"a repeat queues twice", "acquire.go", "c.Ticket); id != 0 &&", "c.Ticket); id != 0 && t.claims.at(id).state == holding &&"},
	{"a repeat does not find its grant", "acquire.go", "c.Ticket); id != 0 &&", "c.Ticket); id != 0 && t.claims.at(id).state == waiting &&"},
	{"a repeat begins the wait anew", "acquire.go", "cl.id = c.Ref\n", "cl.id = c.Ref\nif c.Wait > 0 {\ncl.deadline = now.Add(c.Wait)\nt.setDeadline(id)\n}\n"},
	{"a repeat is told the whole lease", "acquire.go", "max(cl.deadline.Sub(now), 0)", "cl.leaseTime()"},
	{"the request left waiting is not answered", "acquire.go", "t.withdrawRequest(cl, fx)\n", ""},
	{"anybody may use a ticket", "decide.go", "if c.Op == OpRemoveWaiter {\n\t\treturn true", "if c.Op != OpAttach {\n\t\treturn true"},
	{"a grant that moved is told its old session", "sessions.go", "t.unlinkSession(id)\n\tc.session = to\n", "t.unlinkSession(id)\n\tif c.state == waiting || c.session == 0 || to == 0 {\nc.session = to\n}\n"},
	{"STAY moves, and the others stay", "decide.go", "if c.Flags&Stay == 0 {", "if c.Flags&Stay != 0 {"},
	{"a cancel takes the newest", "sessions.go", "\tfor id := t.byRef.first(t.hashRef(s, ref)); id != 0; id = t.byRef.next(id) {\n\t\tif c := t.claims.at(id); c.session == s && c.id == ref {\n\t\t\treturn id\n\t\t}\n\t}\n\treturn 0",
		"\tvar last uint32\n\tfor id := t.byRef.first(t.hashRef(s, ref)); id != 0; id = t.byRef.next(id) {\n\t\tif c := t.claims.at(id); c.session == s && c.id == ref {\n\t\t\tlast = id\n\t\t}\n\t}\n\treturn last"},
	{"a session that goes forgets a waiter", "sessions.go", "t.leave(now, id, ByDetach, fx)\n\t\treturn", "t.unlinkSession(id)\n\t\treturn"},
	{"the grace never ends", "claim.go", "return min(c.deadline, c.grace)", "return c.deadline"},
	{"Bound is ignored", "sessions.go", "if to != 0 && (c.state == waiting || c.flags&Bound != 0) {", "if to != 0 && c.state == waiting {"},
	{"a grace goes on after the ticket was asked for", "decide.go", "t.claims.at(id).undelivered = false\n\tt.setGrace(id, Never)", "t.claims.at(id).undelivered = false"},
	{"an undelivered grant is never withdrawn", "decide.go", "t.moveTo(id, 0)\n\tt.setGrace(id, now.Add(t.cfg.ReattachGrace))", "t.moveTo(id, 0)"},
	{"an undelivered grant without a ticket is kept", "decide.go", "if c.ticket.IsZero() {\n\t\tt.endGrant(now, id, ByWithdrawal", "if c.ticket.IsZero() && c.flags&Bound != 0 {\n\t\tt.endGrant(now, id, ByWithdrawal"},
	{"a grant to one who is away counts as delivered", "handoff.go", "if session == 0 {\n\t\tc.undelivered = true", "if session == 0 {\n\t\tc.undelivered = false"},
	{"anybody's word withdraws a grant", "decide.go", "if id != 0 && t.claims.at(id).session == c.Session {", "if id != 0 {"},

	// What is told.
	{"a lease that ran out is not told", "handoff.go", "(why == ByExpiry || why == ByForce", "(why == ByForce"},
	{"a release is told as a loss", "handoff.go", "(why == ByExpiry || why == ByForce", "(why == ByRelease || why == ByExpiry || why == ByForce"},
	{"a holder is told of nobody", "handoff.go", "if c.flags&Contended == 0 || k.waiters == 0 ||", "if c.flags&Contended == 0 ||"},
	{"Contended gets lost in the queue", "handoff.go", "t.moveTo(id, session)\n", "c.flags &^= Contended\nt.moveTo(id, session)\n"},
	{"the place in line is one too high", "acquire.go", ".Position = k.waiters", ".Position = k.waiters + 1"},

	// Limits and counts.
	{"one key too many", "acquire.go", "t.entries.n >= t.cfg.MaxKeys", "t.entries.n > t.cfg.MaxKeys"},
	{"one byte too many", "acquire.go", "> t.cfg.MaxKeyBytes", "> t.cfg.MaxKeyBytes+1"},
	{"one waiter too many", "acquire.go", "t.waiters >= t.cfg.MaxWaiters", "t.waiters > t.cfg.MaxWaiters"},
	{"one waiter too many on a key", "acquire.go", ">= t.cfg.MaxWaitersPerKey", "> t.cfg.MaxWaitersPerKey"},
	{"one pending request too many", "acquire.go", ">= t.cfg.MaxPending", "> t.cfg.MaxPending"},
	{"what is due counts against the limit of keys", "acquire.go", "t.Advance(now, 0, fx)\n\t\tcode = t.keyLimit(c)", "code = t.keyLimit(c)"},
	{"an empty key stays", "keys.go", "if e.root != 0 || e.qhead != 0 {", "if e.root != 0 || e.qhead != 0 || e.slots == 3 {"},
	{"the bytes of a key stay", "keys.go", "t.keyBytes -= int64(e.keyLen)\n", ""},

	// Replication.
	{"who leaves a line is no event", "apply.go", "return (e.Kind == EventEnqueue || e.Kind == EventDequeue) && e.Ticket.IsZero()", "return e.Kind == EventDequeue || e.Kind == EventEnqueue && e.Ticket.IsZero()"},
	{"two events change places", "apply.go", "fx.Events = append(fx.Events, e)\n", "fx.Events = append(fx.Events, e)\n" +
		"if n := len(fx.Events); n > 1 {\nfx.Events[n-1], fx.Events[n-2] = fx.Events[n-2], fx.Events[n-1]\n}\n"},
	{"a follower keeps a granted ticket in line", "apply.go", "if at.claim = t.findTicket(at.entry, e.Ticket); at.claim != 0 {", "if at.claim != 0 {"},
	{"a snapshot tells the whole lease", "snapshot.go", "Lease: max(c.deadline.Sub(now), 0),", "Lease: c.leaseTime(),"},
	{"a snapshot leaves out a waiter's bound", "snapshot.go", "if c.deadline != Never {\n\t\t\te.Wait", "if c.deadline < 0 {\n\t\t\te.Wait"},
	{"a promotion starts no grace", "reign.go", "c.undelivered = false\n\tt.setGrace(id, until)", "c.undelivered = false"},
	{"a promotion lets nobody in", "reign.go", "return t.serve(now, eid, min(t.due(now), t.reign.began)+1, fx)", "return true"},
	{"a key is not roused by a request", "handoff.go", "if t.asleep(eid) && !t.rouse(now, eid, fx) {", "if t.claims.n < 0 {"},
	{"what falls due does not wait for the walk", "decide.go", "if due == now && t.Rouse(now, limit, fx) {", "if due < 0 {"},
	{"graces count from the walk", "reign.go", "c, until := t.claims.at(id), t.reign.began.Add(t.cfg.ReattachGrace)\n",
		"c, until := t.claims.at(id), t.reign.calm.Add(t.cfg.ReattachGrace)\n"},
	{"a grace of an earlier reign goes on", "reign.go", "c.grace != Never && c.grace >= until {", "c.grace != Never {"},
	{"an undelivered mark of an earlier reign stays", "reign.go", "until = Never\n\t}\n\tc.undelivered = false", "until = c.grace\n\t}"},
	{"leases expire in the calm", "reign.go", "if now < t.reign.calm {", "if now < 0 {"},
	{"the calm goes on", "stepdown.go", "t.reign.calm, t.reign.cursor = 0, 0", "t.reign.cursor = 0"},
	{"a wait ends in the calm when the key goes on", "handoff.go", "case c.end() < freed:", "case c.end() < max(freed, now):"},
	{"an undelivered grant keeps its grace as its node steps down", "stepdown.go", "if c := t.claims.at(id); c.grace != Never {", "if c := t.claims.at(id); c.grace != Never && c.flags&Bound != 0 {"},
	{"a waiter is not told that the node moved", "stepdown.go", "if c.state == waiting && t.here(c.session) {", "if c.state == waiting && c.ticket.IsZero() && t.here(c.session) {"},
	{"a waiter without a ticket stays as its node steps down", "stepdown.go", "if c.state == holding || !c.ticket.IsZero() {", "if c.state == holding || c.ticket[0] == c.ticket[1] {"},
	{"what ended is forgotten", "ended.go", "e.Kind == EventEnd && e.Reason != ByExpiry,", "e.Kind == EventEnd && e.Reason == ByForce,"},
	{"what ran out is recorded", "ended.go", "e.Kind == EventEnd && e.Reason != ByExpiry,", "e.Kind == EventEnd,"},
	{"a snapshot leaves out where the ended set begins", "snapshot.go", ", Event{Kind: EventTrim, Index: t.ended.first})", ")"},
	{"the sum forgets waiters", "apply.go", "t.sum -= k.ofWaiter(c)\n", ""},

	// Merging.
	{"a merge drops the loser's grants", "merge_key.go", "if !g.ours {\n\t\t\tat.entry", "if !g.ours && g.c.ticket.IsZero() {\n\t\t\tat.entry"},
	{"a merge drops the loser's waiters", "merge_key.go", "for id := theirs.qhead; id != 0; {", "for id := theirs.root; id == 0; {"},
	{"a merge brings back what ended here", "merge.go", "m.ended[*ours.at(i)] |= endedHere", "m.ended[*ours.at(i)] |= 0"},
	{"a merge lets stand what ended there", "merge.go", "m.ended[*theirs.at(i)] = endedThere", "m.ended[*theirs.at(i)] = 0"},
	{"a merge keeps the lowest tokens", "merge.go", "return cmp.Compare(b.c.id, a.c.id)", "return cmp.Compare(a.c.id, b.c.id)"},
	{"a merge takes in what ran out there", "merge_key.go", "== 0 && c.deadline > m.now {", "== 0 {"},
	{"a merge keeps the shorter lease", "merge_key.go", "if ours.c.deadline >= theirs.c.deadline {", "if ours.c.deadline <= theirs.c.deadline {"},
	{"a merge grants a ticket twice", "merge_key.go", "kept == room || again ||", "kept == room || again && kept == 0 ||"},
	{"a merge mixes shared and exclusive", "merge_key.go", "|| g.c.flags&Shared != shared {", "|| kept > 2 && g.c.flags&Shared != shared {"},
	{"a superseded grant of the loser is not noted", "merge_key.go", "} else {\n\t\t\tm.note(", "} else if g.slots > 1 {\n\t\t\tm.note("},
	{"a merge leaves waiters for other slots", "merge_key.go", "for k.slots != slots && k.qhead != 0 {", "for k.slots > slots && k.qhead != 0 {"},
	{"a merge enqueues a ticket that stands", "merge_key.go", "|| t.findTicket(at.entry, c.ticket) != 0) {", "|| t.findTicket(at.entry, c.ticket) == 0 && t.bare(at.entry)) {"},
	{"whoever waits here for what holds there is not told", "merge_key.go", "if t.here(w.session) {", "if t.here(w.session) && w.flags&Contended != 0 {"},
	{"what came in has no grace", "merge_key.go", "c.state == waiting || c.flags&Bound != 0 {\n\t\tgrace", "c.state == waiting && c.flags&Bound != 0 {\n\t\tgrace"},
	{"a merge lets nobody in", "merge_key.go", "if at.entry != 0 {\n\t\tm.t.serve(", "if at.entry == 1 {\n\t\tm.t.serve("},
	{"a merge lets nobody in where a grant ended there", "merge.go", "if t.stands(eid) {", "if t.stands(eid) && eid > 3 {"},
}

var harmless = []fault{
	{"a session goes in small pieces", "sessions.go", "const detachPiece = 512", "const detachPiece = 1"},
	{"hashes collide", "hash.go", "return uint32(h ^ h>>32)", "return uint32(h^h>>32) & 3"},
	{"memory comes in small chunks", "slab.go", "chunkBits = 10", "chunkBits = 6"},
	{"every batch is looked at before", "prefetch.go", "const prefetchFrom = 1 << 15", "const prefetchFrom = 1"},
}
