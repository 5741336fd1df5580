package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"holdfast/wire"
)

// member keeps one connection to one address: its goroutine dials, says hello,
// reads until the connection ends, waits and dials again.
type member struct {
	// Static.
	c        *Client
	addr     string
	followed bool          // named by a node, not configured: not dialled again once it ends
	kick     chan struct{} // one slot: dial now rather than later

	// Guarded by Client.mu.
	nc    net.Conn // being set up or in use, for Close
	conn  *conn    // in use; nil while there is none
	node  string   // who answered there last; empty until somebody has
	err   error    // why there is no connection; nil before the first attempt has ended
	since time.Time
}

// connectTimeout bounds dialling, the TLS handshake and the hello together.
const connectTimeout = 5 * time.Second

// software is what the client calls itself in the hello.
const software = "holdfast-go/0.1"

// run keeps the connection until ctx ends.
func (m *member) run(ctx context.Context) {
	defer m.c.wg.Done()
	first := true
	for {
		began := m.c.clock.now()
		served := m.session(ctx)
		if m.followed {
			m.c.removeFollowed(m, served)
			return
		}
		pause := m.pause(first || served)
		if !served { // count from attempt to attempt, but never hammer
			pause = max(pause-m.c.clock.now().sub(began), pause/8)
		}
		if !m.rest(ctx, pause, began) {
			return
		}
		first = false
	}
}

// pause is how long to wait before the next attempt: not in step with others
// who lost the same node at the same moment.
func (m *member) pause(first bool) time.Duration {
	every := float64(m.c.cfg.reconnect)
	if first {
		return time.Duration(rand.Float64() * every / 2)
	}
	return time.Duration((0.8 + 0.4*rand.Float64()) * every)
}

// rest waits for d, or for a kick and until minKick has passed since the last
// attempt began; false means that ctx has ended.
func (m *member) rest(ctx context.Context, d time.Duration, began instant) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	till := m.c.clock.now().add(d)
	kick := m.kick
	for {
		select {
		case <-timer.C:
			return true
		case <-kick:
			kick = nil
			till = min(till, began.add(minKick))
			timer.Reset(max(till.sub(m.c.clock.now()), 0))
		case <-ctx.Done():
			return false
		}
	}
}

// session is one attempt and, where it succeeds, the life of the connection.
func (m *member) session(ctx context.Context) (served bool) {
	n, err := m.connect(ctx)
	if err != nil {
		m.c.attemptFailed(m, err)
		return false
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		n.write()
	}()
	m.c.joined(n)
	err = n.read()
	n.close(err)
	m.c.left(n)
	close(n.gone)
	<-written
	n.abort()
	m.c.adrift(n)
	return true
}

// connect dials and says hello.
func (m *member) connect(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	m.c.attempt(m)
	nc, err := m.c.cfg.dial(ctx, "tcp", m.addr)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if !m.c.adopt(m, nc) {
		nc.Close()
		return nil, ErrClosed
	}
	n, err := m.setUp(ctx, nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return n, nil
}

// setUp makes a connection of a fresh socket.
func (m *member) setUp(ctx context.Context, nc net.Conn) (*conn, error) {
	inline := newInlineWriter(nc)
	if tcp, ok := nc.(*net.TCPConn); ok {
		setUserTimeout(tcp, m.c.cfg.pingEvery+m.c.cfg.pingTimeout)
	}
	deadline, _ := ctx.Deadline()
	if err := nc.SetDeadline(deadline); err != nil {
		return nil, fmt.Errorf("set a deadline: %w", err)
	}
	if m.c.cfg.tls != nil {
		secure, err := m.c.cfg.handshake(ctx, nc, m.addr)
		if err != nil {
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		nc, inline = secure, nil
	}
	n := &conn{
		c: m.c, m: m, nc: nc, inline: inline,
		wake: make(chan struct{}, 1), rearm: make(chan struct{}, 1), gone: make(chan struct{}),
		in: make([]byte, readBufferBytes),
	}
	if err := n.hello(); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	return n, nc.SetDeadline(time.Time{})
}

// handshake speaks TLS on nc.
func (c *config) handshake(ctx context.Context, nc net.Conn, addr string) (net.Conn, error) {
	cfg := c.tls
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	secure := tls.Client(nc, cfg)
	return secure, secure.HandshakeContext(ctx)
}

// hello says who we are and hears who the node is.
func (n *conn) hello() error {
	cfg := &n.c.cfg
	sent := n.c.clock.now()
	if _, err := n.nc.Write(wire.AppendRequest(nil, &wire.Request{
		Op: wire.OpHello, Version: wire.Version,
		Auth: []byte(cfg.auth), Owner: []byte(cfg.owner), Software: []byte(software),
	})); err != nil {
		return err
	}
	var r wire.Reply
	for {
		k, err := n.nc.Read(n.in[n.end:])
		n.end += k
		if used, decodeErr := r.Decode(n.in[:n.end]); decodeErr != nil {
			return fmt.Errorf("decode a reply: %w", decodeErr)
		} else if used > 0 {
			err = n.welcomed(&r)
			n.end = copy(n.in, n.in[used:n.end])
			n.answered, n.heard, n.pingEvery = sent, n.c.clock.now(), cfg.pingEvery
			return err
		}
		if err != nil {
			return err
		}
	}
}

// welcomed takes the answer to the hello.
func (n *conn) welcomed(r *wire.Reply) error {
	switch {
	case r.Status == wire.StatusError:
		return &ServerError{Code: r.Code, Message: string(r.Message)}
	case r.Op != wire.OpHello:
		return fmt.Errorf("answered with %v before the welcome", r.Op)
	case r.Version != wire.Version:
		return fmt.Errorf("the node speaks protocol version %d, this client %d", r.Version, wire.Version)
	}
	n.welcome = welcome{
		node: string(r.Node), role: r.Role, active: string(r.Addr), activeNode: string(r.ActiveNode),
		defaultLeaseMS: r.DefaultLeaseMS,
	}
	return nil
}

// name is what tells nodes apart: a node may have several addresses.
func (n *conn) name() string {
	if n.welcome.node != "" {
		return n.welcome.node
	}
	return n.m.addr
}

// isRefusal says whether err is the node's own word, which no repetition
// changes, rather than a failure on the way.
func isRefusal(err error) bool { return errors.Is(err, ErrUnauthorized) }
