package native

import (
	"time"

	"holdfast/wire"
)

// ordered keeps the answers of ordered mode (id 0) in order: those to requests
// that share op and key leave in the order in which these were sent. Only an
// acquire is ever answered later than the next request, so only acquires are
// looked at, and only those behind one that waits.
type ordered struct {
	lines   map[string]*line // by key; none is empty
	answers map[ref]answer   // held back
	ripe    []*line          // lines that begin with an answer, to be written when the output has room
	held    int              // answers in lines, but for refusals
}

// line is the acquires of one key from the first that is not answered on.
type line struct {
	fifo
	key  string
	ripe bool // stands in ordered.ripe
}

// answer is a reply that is held back, without its key.
type answer struct {
	status  wire.Status
	code    wire.Code
	token   uint64
	ends    time.Time // granted: when the lease does
	message []byte
	times   int // refusal: how many acquires it answers
}

// queue puts an acquire that waits into its line.
func (o *ordered) queue(r ref, key []byte) {
	l := o.lines[string(key)]
	if l == nil {
		if o.lines == nil {
			o.lines = make(map[string]*line)
		}
		l = &line{key: string(key)}
		o.lines[l.key] = l
	}
	l.push(sent{ref: r})
}

// waits says whether an acquire stands in its line without an answer.
func (o *ordered) waits(r ref, key []byte) bool {
	l := o.lines[string(key)]
	if l == nil {
		return false
	}
	s := l.find(r)
	return s != nil && !s.done
}

// hold takes an answer whose turn may not have come. It returns false where
// nothing is before it: the caller may send it.
func (o *ordered) hold(r ref, reply *wire.Reply) bool {
	if len(o.lines) == 0 {
		return false
	}
	l := o.lines[string(reply.Key)]
	if l == nil {
		return false
	}
	if s := l.find(r); s != nil {
		s.done = true
	} else {
		l.push(sent{r, true})
	}
	if o.answers == nil {
		o.answers = make(map[ref]answer)
	}
	o.answers[r] = answerOf(reply)
	o.held++
	o.ripen(l)
	return true
}

// refuse answers an acquire that there is no room for, if it has others before
// it. Refusals in a row are kept as one, so that however many there are they
// need no room.
func (o *ordered) refuse(r ref, reply *wire.Reply) bool {
	l := o.lines[string(reply.Key)]
	if l == nil {
		return false
	}
	last := l.last()
	if a := o.answers[last.ref]; last.done && a.times > 0 {
		a.times++
		o.answers[last.ref] = a
		return true
	}
	l.push(sent{r, true})
	a := answerOf(reply)
	a.times = 1
	if o.answers == nil {
		o.answers = make(map[ref]answer)
	}
	o.answers[r] = a
	return true
}

// ripen notes a line whose first answer may go.
func (o *ordered) ripen(l *line) {
	if l.first().done && !l.ripe {
		l.ripe = true
		o.ripe = append(o.ripe, l)
	}
}

// release hands the answers whose turn has come to send, until there are none
// or send has no room.
func (o *ordered) release(send func(*wire.Reply) bool) {
	for len(o.ripe) > 0 {
		l := o.ripe[0]
		if !o.releaseLine(l, send) {
			return
		}
		l.ripe = false
		o.ripe[0] = nil
		o.ripe = o.ripe[1:]
		if l.empty() {
			delete(o.lines, l.key)
		}
	}
	if len(o.lines) == 0 {
		*o = ordered{} // a map never shrinks
	}
}

func (o *ordered) releaseLine(l *line, send func(*wire.Reply) bool) bool {
	key := []byte(l.key)
	for !l.empty() && l.first().done {
		r := l.first().ref
		a := o.answers[r]
		if !send(a.reply(key)) {
			return false
		}
		if a.times > 1 {
			a.times--
			o.answers[r] = a
			continue
		}
		if a.times == 0 {
			o.held--
		}
		delete(o.answers, r)
		l.pop()
	}
	return true
}

// grants calls f for every grant that is held back.
func (o *ordered) grants(f func(key []byte, token uint64)) {
	for _, l := range o.lines {
		for _, s := range l.items[l.head:] {
			if a := o.answers[s.ref]; s.done && a.status == wire.StatusGranted {
				f([]byte(l.key), a.token)
			}
		}
	}
}

func answerOf(r *wire.Reply) answer {
	a := answer{status: r.Status, code: r.Code, token: r.Token, message: r.Message}
	if r.Status == wire.StatusGranted {
		a.ends = time.Now().Add(time.Duration(r.LeaseMS) * time.Millisecond)
	}
	return a
}

// reply is the frame of an answer that goes out now.
func (a *answer) reply(key []byte) *wire.Reply {
	r := &wire.Reply{Op: wire.OpAcquire, Status: a.status, Key: key, Token: a.token, Code: a.code, Message: a.message}
	if a.status == wire.StatusGranted {
		r.LeaseMS = millis(time.Until(a.ends))
	}
	return r
}
