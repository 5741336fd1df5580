//go:build linux

package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"holdfast/wire"
)

// rawParty speaks the native protocol as its page describes it: one connection to the active, over which any number of
// goroutines pipeline their requests, tickets, and repeats with RETRY where a connection ended or a node said "moved".
type rawParty struct {
	h    *history
	s    *set
	name string

	mu    sync.Mutex // guards what follows; held while dialling, for all need the connection
	cur   *conn
	hint  string // address of the active, as far as known
	turn  int    // the next node to try
	watch sync.WaitGroup
}

func newRaw(h *history, s *set, name string) *rawParty { return &rawParty{h: h, s: s, name: name} }

func (p *rawParty) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur != nil {
		p.cur.close()
	}
	p.watch.Wait()
}

// connect returns the connection to the active; old is one that leads to it no more.
func (p *rawParty) connect(ctx context.Context, old *conn) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur != nil && p.cur != old && !p.cur.over() {
		return p.cur, nil
	}
	if p.cur != nil {
		p.cur.close()
		p.cur = nil
	}
	for end := time.Now().Add(patience); ctx.Err() == nil; pause(ctx, redialPause) {
		if time.Now().After(end) {
			return nil, errGaveUp
		}
		if c := p.dialLocked(); c != nil {
			return c, nil
		}
	}
	return nil, context.Cause(ctx)
}

func (c *conn) over() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// dialLocked tries one address; nil if the active is not there.
func (p *rawParty) dialLocked() *conn {
	addr := p.hint
	if addr == "" {
		addr = p.s.nodes[p.turn%len(p.s.nodes)].native()
		p.turn++
	}
	p.hint = ""
	c, err := p.s.open(addr, dialLimit, nil)
	if err != nil {
		return nil
	}
	if c.welcome.Role != wire.RoleActive {
		p.hint = string(c.welcome.Addr)
		c.close()
		return nil
	}
	p.watch.Go(func() { c.watch(200 * time.Millisecond) })
	p.cur = c
	return c
}

// ask sends a request to the active until it is answered by it. again is what is sent from the second time on.
func (p *rawParty) ask(ctx context.Context, r, again wire.Request, sent func(*conn)) (got wire.Reply, node string, repeated bool, err error) {
	var c *conn
	for {
		if c, err = p.connect(ctx, c); err != nil {
			return got, "", repeated, err
		}
		answer, err := c.begin(r)
		if err == nil {
			if sent != nil {
				sent(c)
			}
			got, err = c.wait(ctx, answer)
		}
		switch {
		case ctx.Err() != nil && err != nil:
			return got, "", repeated, err
		case err == nil && got.Status != wire.StatusMoved && !(got.Status == wire.StatusError && got.Code == wire.CodeUnavailable):
			return got, string(c.welcome.Node), repeated, nil
		case err == nil:
			p.moved(got)
		default:
			repeated = true
		}
		r = again
	}
}

func (p *rawParty) moved(r wire.Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hint = string(r.Addr)
}

func (p *rawParty) acquire(ctx context.Context, key string, lease time.Duration) (*attempt, hold, error) {
	r := acquire(key, lease)
	rand.Read(r.Ticket[:])
	again := r
	again.Flags |= wire.FlagRetry
	a := &attempt{client: p.name, key: key, lease: lease, ticket: true, asked: p.h.now()}
	read := make(chan instant, 1)
	// The pong of a ping behind the acquire says that the node has read both.
	ping := func(c *conn) {
		if pong, err := c.begin(wire.Request{Op: wire.OpPing}); err == nil && a.read == 0 {
			go func() {
				if _, err := c.wait(ctx, pong); err == nil {
					select {
					case read <- p.h.now():
					default:
					}
				}
			}()
		}
	}
	got, node, _, err := p.ask(ctx, r, again, ping)
	if err != nil {
		return nil, nil, err
	}
	if got.Status != wire.StatusGranted {
		return nil, nil, fmt.Errorf("acquire %q was answered %c %d %s", key, got.Status, got.Code, got.Message)
	}
	a.granted, a.token, a.node = p.h.now(), got.Token, node
	select {
	case a.read = <-read:
	default:
	}
	return a, &rawHold{p, key, got.Token}, nil
}

type rawHold struct {
	p     *rawParty
	key   string
	token uint64
}

func (l *rawHold) release(ctx context.Context) (holds, repeated bool, err error) {
	r := release(l.key, l.token)
	got, _, repeated, err := l.p.ask(ctx, r, r, nil)
	return judge(got, wire.StatusReleased, repeated, err)
}

func (l *rawHold) extend(ctx context.Context, lease time.Duration) (holds, repeated bool, err error) {
	r := extend(l.key, l.token, lease)
	got, _, repeated, err := l.p.ask(ctx, r, r, nil)
	return judge(got, wire.StatusExtended, repeated, err)
}

func judge(got wire.Reply, good wire.Status, repeated bool, err error) (bool, bool, error) {
	switch {
	case err != nil:
		return false, repeated, err
	case got.Status != good && got.Status != wire.StatusNone:
		return false, repeated, fmt.Errorf("%c of %q was answered %c %d %s", got.Op, got.Key, got.Status, got.Code, got.Message)
	}
	return got.Status == good, repeated, nil
}
