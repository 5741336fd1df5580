package web

import (
	"context"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// watching is what a socket watches. It writes what it has to tell itself and
// waits for the client to take it: meanwhile the feed goes on, and tells of the
// gap. So a client that does not read costs nobody anything.
type watching struct {
	sub    *node.Subscription // nil: only stats
	prefix string
	stats  bool
	stop   context.CancelFunc
	done   chan struct{}
}

func (c *socket) watch(m *message) error {
	in, err := decodeMessage(wsWatchSchema, m)
	if err != nil {
		return err
	}
	w := &watching{stats: true, done: make(chan struct{})}
	filter := node.Filter{}
	if in.prefix != nil {
		filter.Prefix, filter.Traffic, w.prefix = *in.prefix, true, *in.prefix
	}
	if in.types != nil {
		filter.Types, w.stats = in.types.notices, in.types.stats
	}
	c.unwatch()
	if in.types == nil || len(filter.Types) > 0 {
		if w.sub, err = c.srv.node.Feed().Subscribe(filter); err != nil {
			return &refusedError{failWith(codeLimit, err.Error(), facts{Limit: "prefixes"})}
		}
	}
	if w.stats {
		c.srv.stats.prime(c.srv.node)
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(c.ctx)
	c.watching = w
	go w.run(ctx, c)
	return nil
}

func (c *socket) endWatch(m *message) error {
	_, err := decodeMessage(nothing, m)
	if err == nil {
		c.unwatch()
	}
	return err
}

// unwatch ends the watch and waits for it.
func (c *socket) unwatch() {
	w := c.watching
	if w == nil {
		return
	}
	c.watching = nil
	w.stop()
	<-w.done
	if w.sub != nil {
		w.sub.Close()
	}
}

// run tells what there is to tell until ctx ends.
func (w *watching) run(ctx context.Context, c *socket) {
	defer close(w.done)
	due := time.Now().Add(time.Second)
	for ctx.Err() == nil {
		b := w.next(ctx, due)
		told := w.tell(ctx, c, &b)
		if now := time.Now(); told && w.stats && !now.Before(due) && ctx.Err() == nil {
			told = c.tell(c.srv.stats.get(c.srv.node))
			due = now.Add(time.Second)
		}
		if !told {
			c.end(wsGone)
			return
		}
	}
}

// next waits for events, but not beyond the time for stats.
func (w *watching) next(ctx context.Context, due time.Time) (b node.Batch) {
	if w.stats {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, due)
		defer cancel()
	}
	if w.sub == nil {
		<-ctx.Done()
		return b
	}
	b, _ = w.sub.Next(ctx) // its error is ctx's
	return b
}

// tell writes a message, and waits until the client has room for it.
func (c *socket) tell(body any) bool {
	return c.ws.Write(context.Background(), websocket.MessageText, wsText(body)) == nil
}

type wsGapPush struct {
	Push string `json:"push"`
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

type wsEventPush struct {
	Push    string      `json:"push"`
	Seq     uint64      `json:"seq"`
	Type    string      `json:"type"`
	At      *time.Time  `json:"at,omitempty"`
	Prefix  *string     `json:"prefix,omitempty"` // skipped: whose
	Key     string      `json:"key,omitempty"`
	Token   locks.Token `json:"token,omitempty"`
	Owner   string      `json:"owner,omitempty"`
	Node    string      `json:"node,omitempty"`
	Role    string      `json:"role,omitempty"`
	Text    string      `json:"text,omitempty"`
	Action  string      `json:"action,omitempty"`
	Who     string      `json:"who,omitempty"`
	From    string      `json:"from,omitempty"`
	Why     string      `json:"why,omitempty"`
	Result  string      `json:"result,omitempty"`
	Skipped uint64      `json:"skipped,omitempty"`
}

// tell tells of a batch. Each message is made as the one before is out: who does
// not read has nothing lying here.
func (w *watching) tell(ctx context.Context, c *socket, b *node.Batch) bool {
	if b.GapTo != 0 && !c.tell(wsGapPush{"gap", b.GapFrom, b.GapTo}) {
		return false
	}
	for i := range b.Notices {
		if ctx.Err() != nil {
			return true
		}
		if !c.tell(eventPush(&b.Notices[i], c.id.Operate)) {
			return false
		}
	}
	return b.Skipped == 0 || c.tell(wsEventPush{Push: "event", Type: "skipped", Seq: b.Seq, Prefix: &w.prefix, Skipped: b.Skipped})
}

// eventPush words a notice. A token is all that one needs to take a lock away,
// so only operators see those of others.
func eventPush(one *node.Notice, operate bool) wsEventPush {
	at := one.At.UTC().Truncate(time.Millisecond)
	e := wsEventPush{
		Push: "event", Seq: one.Seq, Type: one.Type.String(), At: &at, Key: one.Key, Token: one.Token, Owner: one.Owner,
		Node: one.Node, Text: one.Text, Action: one.Action, Who: one.Who, From: one.From, Why: one.Why, Result: one.Result,
		Skipped: one.Skipped,
	}
	if one.Type == node.NoticeRole {
		e.Role = one.Role.String()
	}
	if !operate {
		e.Token = 0
	}
	return e
}
