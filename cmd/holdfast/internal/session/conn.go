package session

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"holdfast/wire"
)

const (
	// readBufferBytes holds two frames of the largest size, so that there is
	// always room to complete the one in front.
	readBufferBytes = 2 * (wire.MaxFrameBytes + 4)
	// flushBytes is what Queue collects at most before it writes.
	flushBytes = 32 << 10
)

// Config says how connections are opened.
type Config struct {
	TLS       *tls.Config   // nil = plain TCP
	AuthToken string        // sent in the hello; may be empty
	Owner     string        // the label that people read
	Software  string        // client name and version
	Timeout   time.Duration // for dialling, TLS and hello together
	// Dial replaces net.Dialer's method, if it is not nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Welcome is what a server says of itself when a connection opens.
type Welcome struct {
	Role         wire.Role
	Node         string // the name of the answering node
	Active       string // native address of the active; empty if unknown
	ActiveNode   string // name of the active
	Software     string
	MaxKeyBytes  int
	DefaultLease time.Duration
	MaxLease     time.Duration
}

// Conn is an open connection, for one goroutine at a time (Close and Interrupt
// excepted).
type Conn struct {
	// Static after Dial.
	Welcome Welcome
	nc      net.Conn

	// Owned by the caller's goroutine.
	out        []byte // encoded requests not yet written
	in         []byte
	head, tail int // in[head:tail] has been read and not yet decoded
	writeErr   error
}

// Dial connects to addr and says hello. It fails with a *Refusal when the
// server answers with an error.
func Dial(ctx context.Context, addr string, cfg Config) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	dial := cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, bare(err)
	}
	if cfg.TLS != nil {
		if nc, err = handshake(ctx, nc, addr, cfg.TLS); err != nil {
			return nil, err
		}
	}
	c := &Conn{nc: nc, in: make([]byte, readBufferBytes)}
	release := c.Guard(ctx)
	err = c.hello(cfg)
	if !release() && err == nil {
		err = context.Cause(ctx) // the deadline is spent: the connection is of no use any more
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func handshake(ctx context.Context, nc net.Conn, addr string, cfg *tls.Config) (net.Conn, error) {
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			nc.Close()
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	tc := tls.Client(nc, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("TLS handshake: %w", hintTLS(err))
	}
	return tc, nil
}

func (c *Conn) hello(cfg Config) error {
	hello := wire.Request{
		Op: wire.OpHello, ID: 1, Version: wire.Version,
		Auth: []byte(cfg.AuthToken), Owner: []byte(cfg.Owner), Software: []byte(cfg.Software),
	}
	if err := hello.Check(); err != nil {
		return err
	}
	c.Queue(&hello)
	var r wire.Reply
	if err := c.Next(&r); err != nil {
		return hintSilence(err, cfg.TLS != nil)
	}
	if r.Status == wire.StatusError {
		return refusal(&r)
	}
	if r.Op != wire.OpHello || r.Status != wire.StatusWelcome {
		return fmt.Errorf("hello was answered by %q", r.Outcome())
	}
	c.Welcome = Welcome{
		Role: r.Role, Node: string(r.Node), Active: string(r.Addr), ActiveNode: string(r.ActiveNode),
		Software: string(r.Software), MaxKeyBytes: int(r.MaxKey),
		DefaultLease: milliseconds(r.DefaultLeaseMS), MaxLease: milliseconds(r.MaxLeaseMS),
	}
	return nil
}

func milliseconds(ms uint32) time.Duration { return time.Duration(ms) * time.Millisecond }

// Guard makes reads and writes fail once ctx ends, until the returned function
// is called; that one reports whether the connection was left untouched.
func (c *Conn) Guard(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, c.Interrupt)
}

// Interrupt makes reads and writes fail from now on. It may be called from any
// goroutine.
func (c *Conn) Interrupt() {
	c.nc.SetDeadline(time.Unix(1, 0)) // fails on a closed connection only, which needs no interruption
}

// Close ends the connection.
func (c *Conn) Close() error { return c.nc.Close() }

// Queue adds a request to those that leave with the next write. A failed write
// is reported by Next.
func (c *Conn) Queue(r *wire.Request) {
	c.out = wire.AppendRequest(c.out, r)
	if len(c.out) >= flushBytes {
		c.flush()
	}
}

func (c *Conn) flush() {
	if c.writeErr == nil {
		_, c.writeErr = c.nc.Write(c.out)
	}
	c.out = c.out[:0]
}

// Next decodes the next frame, pushes included. What r points to is valid until
// the next call. Queued requests are written only when nothing more can be
// decoded, so that requests share packets as far as the replies do.
func (c *Conn) Next(r *wire.Reply) error {
	for {
		n, err := r.Decode(c.in[c.head:c.tail])
		if err != nil {
			return hintForeign(c.in[c.head:c.tail], err)
		}
		if n > 0 {
			c.head += n
			return nil
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

func (c *Conn) fill() error {
	if len(c.out) > 0 {
		c.flush()
	}
	if c.writeErr != nil {
		return fmt.Errorf("write: %w", bare(c.writeErr))
	}
	c.tail = copy(c.in, c.in[c.head:c.tail])
	c.head = 0
	n, err := c.nc.Read(c.in[c.tail:])
	c.tail += n
	if n > 0 {
		return nil
	}
	if err == io.EOF {
		return hintForeign(c.in[:c.tail], ErrClosedByServer)
	}
	return fmt.Errorf("read: %w", bare(err))
}
