package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

const (
	maxPoll     = 50 * time.Second // proxies cut requests that are silent for a minute
	defaultPoll = 25 * time.Second // of a request that has a ticket
)

type acquireInput struct {
	key    string
	lease  time.Duration
	wait   time.Duration
	try    bool
	shared bool
	slots  uint16
	ticket *locks.Ticket
	owner  string
	poll   *time.Duration
}

var acquireSchema = schema[acquireInput]{
	need("key", func(in *acquireInput) *string { return &in.key }, parseKey),
	take("lease", func(in *acquireInput) *time.Duration { return &in.lease }, parseSeconds),
	take("wait", func(in *acquireInput) *time.Duration { return &in.wait }, secondsUpTo(maxWait)),
	take("try", func(in *acquireInput) *bool { return &in.try }, parseBool),
	take("shared", func(in *acquireInput) *bool { return &in.shared }, parseBool),
	take("slots", func(in *acquireInput) *uint16 { return &in.slots }, parseSlots),
	take("ticket", func(in *acquireInput) **locks.Ticket { return &in.ticket }, optional(parseTicket)),
	take("owner", func(in *acquireInput) *string { return &in.owner }, parseLabel),
	take("poll", func(in *acquireInput) **time.Duration { return &in.poll }, optional(secondsUpTo(maxPoll))),
}

// attempt is one acquire request on its way through the queue.
type attempt struct {
	server *Server
	in     acquireInput
	from   locks.Origin
	ticket locks.Ticket
	plain  bool // the client reads a line of text, in which a 202 has no place
	sess   *node.Session
	box    inbox
	place  uint32 // in the queue, when the request was read
}

// ending is how the wait for a grant ended.
type ending uint8

const (
	answered ending = iota // the table said its last word
	held                   // the attempt still queues, and was held long enough
	gone                   // the client went away
	stopped                // the server ends all long polls
)

func (s *Server) acquire(w http.ResponseWriter, r *http.Request) {
	in, refusal := readInput(w, r, acquireSchema)
	if refusal != nil {
		s.send(w, r, refusal)
		return
	}
	a := s.newAttempt(r, in)
	reply, how := a.run(r.Context())
	switch {
	case how == answered && reply.Code == locks.Granted:
		// A client that is gone did not get it. That can only be said before the
		// answer is written: afterwards it may have read it and closed.
		if r.Context().Err() != nil || s.send(w, r, a.granted(&reply)) != nil {
			a.undelivered(reply.Token)
		}
	case how == answered:
		s.send(w, r, s.refuse(r, in.key, &reply))
	case how == held && a.plain:
		s.send(w, r, notGranted(in.key, &reply))
	case how == held:
		if s.send(w, r, a.queued()) != nil {
			a.leave()
		}
	case how == gone:
		a.leave()
	default:
		a.leave()
		s.send(w, r, stopping())
	}
}

func (s *Server) newAttempt(r *http.Request, in acquireInput) *attempt {
	a := &attempt{server: s, in: in, from: s.source(r, in.owner), plain: wantsPlain(r), box: newInbox()}
	if in.ticket != nil {
		a.ticket = *in.ticket
	} else {
		rand.Read(a.ticket[:]) // never fails
	}
	return a
}

// given says whether the client knows the attempt's ticket: only then can it come
// back for its place or its grant.
func (a *attempt) given() bool { return a.in.ticket != nil }

// byTable is the hold of a request that the table answers in time.
const byTable = -1

// command makes the attempt's acquire, and says how long to hold the request if
// the table does not answer first.
func (a *attempt) command() (c locks.Command, hold time.Duration) {
	c = locks.Command{
		Op: locks.OpAcquire, Key: []byte(a.in.key), Lease: a.in.lease, Wait: a.in.wait, Slots: a.in.slots, Ticket: a.ticket,
	}
	if a.in.try {
		c.Flags |= locks.Try
	}
	if a.in.shared {
		c.Flags |= locks.Shared
	}
	if a.given() {
		c.Flags |= locks.Retry
	}
	switch {
	case a.plain && a.given():
		return c, maxPoll
	case a.plain || a.in.poll == nil && !a.given():
		if c.Wait == 0 || c.Wait > maxPoll {
			c.Wait = maxPoll
		}
		return c, byTable
	case a.in.poll != nil:
		return c, *a.in.poll
	}
	return c, defaultPoll
}

// run sends the acquire to the table and waits for what becomes of it. The
// session is closed when it returns, so that nothing can happen unseen.
func (a *attempt) run(ctx context.Context) (locks.Reply, ending) {
	c, hold := a.command()
	a.sess = a.server.node.Open(a.from, a.box)
	do(a.sess, c)
	reply, how := a.await(ctx, hold)
	end(a.sess)
	if how == answered {
		return reply, how
	}
	return a.settle(how)
}

// await waits for the table's last word, but not for longer than it should.
func (a *attempt) await(ctx context.Context, hold time.Duration) (locks.Reply, ending) {
	var over <-chan time.Time
	if hold != byTable {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case r := <-a.box:
			if r.Code != locks.Queued {
				return r, answered
			}
			a.place = r.Position
		case <-over:
			return locks.Reply{}, held
		case <-ctx.Done():
			return locks.Reply{}, gone
		case <-a.server.polls.Done():
			return locks.Reply{}, stopped
		}
	}
}

// settle looks at what came at the last moment: a last word counts.
func (a *attempt) settle(how ending) (locks.Reply, ending) {
	for {
		select {
		case r := <-a.box:
			if r.Code != locks.Queued {
				return r, answered
			}
			a.place = r.Position
		default:
			return locks.Reply{}, how
		}
	}
}

// undelivered gives back a grant that the client never got. With a ticket that it
// knows it may still come for it, within the grace.
func (a *attempt) undelivered(token locks.Token) {
	if a.given() {
		defer crash()
		a.sess.Undelivered([]byte(a.in.key), token)
		return
	}
	a.server.ask(context.Background(), a.from, locks.Command{Op: locks.OpRelease, Key: []byte(a.in.key), Token: token})
}

// leave takes out of the queue an attempt whose ticket nobody knows; one that
// the client named keeps its place for the grace. Its turn may have come since
// the session was closed.
func (a *attempt) leave() {
	if a.given() {
		return
	}
	cancel := locks.Command{Op: locks.OpCancelTicket, Key: []byte(a.in.key), Ticket: a.ticket}
	r, ok := a.server.ask(context.Background(), a.from, cancel)
	if ok && r.Code == locks.AlreadyGranted {
		a.undelivered(r.Token)
	}
}

type grantedBody struct {
	Status string      `json:"status"`
	Key    string      `json:"key"`
	Token  locks.Token `json:"token"`
	Lease  seconds     `json:"lease"`
	Ticket ticketText  `json:"ticket"`
	Waited seconds     `json:"waited"`
}

func (a *attempt) granted(r *locks.Reply) *answer {
	return ok(grantedBody{"granted", a.in.key, r.Token, seconds(r.Lease), ticketText(a.ticket), seconds(r.Waited)},
		strconv.FormatUint(uint64(r.Token), 10))
}

type queuedBody struct {
	Status       string     `json:"status"`
	Key          string     `json:"key"`
	Ticket       ticketText `json:"ticket"`
	Position     uint32     `json:"position"`
	RepeatWithin seconds    `json:"repeat_within"`
}

func (a *attempt) queued() *answer {
	return &answer{
		status: http.StatusAccepted,
		body:   queuedBody{"queued", a.in.key, ticketText(a.ticket), a.place, seconds(a.server.grace)},
	}
}

// ticketText is a ticket as answers show it: 32 hex digits in lower case.
type ticketText locks.Ticket

// MarshalText writes t in hex.
func (t ticketText) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, t[:]), nil }
