package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Client holds connections to the nodes of one Holdfast server or cluster and
// takes locks through them. It may be used by any number of goroutines.
type Client struct {
	// Static.
	cfg        config
	clock      clock
	configured int // connections to configured addresses
	ctx        context.Context
	cancel     context.CancelCauseFunc
	wg         sync.WaitGroup // every goroutine of the client

	// Safe for use by several goroutines.
	calls     callPool
	tickets   ticketSource
	watch     watch
	count     counters
	usable    atomic.Pointer[[]*conn]
	turn      atomic.Uint64
	failures  atomic.Uint64 // attempts to connect that failed
	known     atomic.Bool   // active is not empty
	closing   atomic.Bool
	closed    chan struct{}  // closed by Close when it begins
	dismissed sync.WaitGroup // callers that Close has woken and that still have a request under way
	done      chan struct{}  // closed by Close when it is through

	// Lock order: mu before conn.mu; watch.mu is held alone.
	mu          sync.Mutex // guards what follows
	members     []*member  // configured ones first
	active      string     // conn.name of the active; empty = none known
	served      instant    // when the last one was lost; 0 = none was yet
	changed     chan struct{}
	unreachable map[string]instant // addresses named by nodes that are not to be dialled until then
	down        bool               // Close ends the connections: no new ones
}

// New makes a Client for the nodes at addrs, each host:port, and connects in
// the background: it returns before any connection stands (see Ready). One
// address gets two connections, so that a brief drop of one interrupts
// nothing. The error lists everything that is wrong with the arguments.
func New(addrs []string, opts ...Option) (*Client, error) {
	cfg := defaults()
	cfg.addrs = slices.Clone(addrs)
	for _, opt := range opts {
		opt(&cfg)
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("holdfast client: %w", err)
	}
	c := &Client{
		cfg: cfg, clock: newClock(),
		closed: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{}),
		unreachable: make(map[string]instant),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.usable.Store(&[]*conn{})
	c.watch.init(c.clock)
	c.start()
	return c, nil
}

func (c *Client) start() {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		c.watch.run(c.ctx.Done())
	}()
	addrs := c.cfg.addrs
	if len(addrs) == 1 {
		addrs = []string{addrs[0], addrs[0]}
	}
	c.configured = len(addrs)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, addr := range addrs {
		c.startLocked(&member{c: c, addr: addr, kick: make(chan struct{}, 1)})
	}
}

// closeTime bounds what Close spends on withdrawing what callers left behind.
const closeTime = time.Second

// Close ends the client. Calls that are waiting get ErrClosed; acquires among
// them are withdrawn, for at most a second. Locks that are still held stay
// with the server until their leases end (those bound to a connection go soon
// after), but count as lost here, since nobody watches them any more: release
// first, then close. Close waits for every goroutine of the client. Its error
// is nil the first time, then ErrClosed.
func (c *Client) Close() error {
	if c.closing.Swap(true) {
		<-c.done
		return ErrClosed
	}
	close(c.closed)
	c.dismiss()
	c.settleAll(closeTime)

	c.mu.Lock()
	c.down = true
	for _, m := range c.members {
		switch {
		case m.conn != nil:
			m.conn.close(ErrClosed)
		case m.nc != nil:
			m.nc.Close()
		}
	}
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.wg.Wait()
	for _, l := range c.watch.everything() {
		l.lose(LostClosed)
	}
	close(c.done)
	return nil
}

// dismiss wakes every caller that waits for an answer, and waits until each
// has given its request up.
func (c *Client) dismiss() {
	c.mu.Lock()
	var conns []*conn
	for _, m := range c.members {
		if m.conn != nil {
			conns = append(conns, m.conn)
		}
	}
	c.mu.Unlock()
	for _, n := range conns {
		n.dismiss()
	}
	c.dismissed.Wait()
}

// dismiss wakes the callers that wait on n. Their calls stay until they are
// answered; see call.roused.
func (n *conn) dismiss() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true
	for _, cl := range n.table.calls {
		if cl != nil && cl.owner == nil {
			n.c.dismissed.Add(1)
			cl.dismissed = true
			cl.rouse()
		}
	}
}
