package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"holdfast/wire"
)

// Option sets something of a Client.
type Option func(*config)

// Dialer opens a connection, as net.Dialer.DialContext does; network is "tcp".
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Follow says which addresses a client goes to when a node names the active.
type Follow uint8

const (
	// FollowAny dials any address that a node names (the default).
	FollowAny Follow = iota
	// FollowConfigured goes to configured addresses only, so that the auth
	// token is never sent anywhere else.
	FollowConfigured
)

// maxAuthBytes keeps a hello with the longest owner well within one frame.
const maxAuthBytes = 4096

// config is what New was told. Durations are positive after validate.
type config struct {
	addrs []string // host:port, in the order given

	owner  string // ≤ wire.MaxOwnerBytes
	auth   string // ≤ maxAuthBytes; never logged
	tls    *tls.Config
	dial   Dialer
	follow Follow

	reconnect    time.Duration // between two attempts of one connection
	releaseFor   time.Duration // how long a release is retried
	releaseEvery time.Duration
	pingEvery    time.Duration // longest silence before a ping
	pingTimeout  time.Duration // longest silence after one
	patient      bool

	log     *slog.Logger
	observe func(Event) // nil = none
}

func defaults() config {
	return config{
		owner:        defaultOwner(),
		dial:         (&net.Dialer{}).DialContext,
		reconnect:    3 * time.Second,
		releaseFor:   5 * time.Second,
		releaseEvery: 200 * time.Millisecond,
		pingEvery:    5 * time.Second,
		pingTimeout:  3 * time.Second,
		log:          slog.New(slog.DiscardHandler),
	}
}

// defaultOwner is host/process:pid, without what the protocol refuses.
func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	owner := host + "/" + filepath.Base(os.Args[0])
	clean := func(r rune) rune {
		if r < 0x20 || r == 0x7F {
			return '_'
		}
		return r
	}
	owner = strings.ToValidUTF8(strings.Map(clean, owner), "_")
	pid := ":" + strconv.Itoa(os.Getpid())
	if room := wire.MaxOwnerBytes - len(pid); len(owner) > room {
		owner = strings.ToValidUTF8(owner[:room], "")
	}
	return owner + pid
}

// WithOwner sets the label under which people see this client's locks: at most
// 255 bytes of UTF-8 without control characters. Default: host/process:pid.
func WithOwner(owner string) Option { return func(c *config) { c.owner = owner } }

// WithAuthToken sets the secret that the nodes ask for, at most 4,096 bytes.
// Default: none.
func WithAuthToken(token string) Option { return func(c *config) { c.auth = token } }

// WithTLS speaks TLS on every connection. A ServerName that is empty is taken
// from the address. Default: plain TCP.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithDialer replaces how connections are opened (before TLS). A dialer must
// honour its context.
func WithDialer(dial Dialer) Option { return func(c *config) { c.dial = dial } }

// WithReconnect sets how long a lost connection waits between two attempts,
// ±20 %; the first comes after a random 0 to half of it. Default: 3 s.
func WithReconnect(every time.Duration) Option { return func(c *config) { c.reconnect = every } }

// WithReleaseRetry sets for how long, and how often, a release is retried
// while its outcome is unknown. Default: 5 s, every 200 ms.
func WithReleaseRetry(total, every time.Duration) Option {
	return func(c *config) { c.releaseFor, c.releaseEvery = total, every }
}

// WithPing sets after how much silence a connection is probed, and how much
// more silence ends it. While an acquire is under way it is probed at least
// every 2 s, so that with the default timeout a waiter whose node is cut off
// still finds its place at the next active. On Linux their sum is the TCP user timeout as well.
// Default: 5 s and 3 s.
func WithPing(every, timeout time.Duration) Option {
	return func(c *config) { c.pingEvery, c.pingTimeout = every, timeout }
}

// WithLogger logs connections, changes of the active and lost locks. Default:
// nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// WithObserver calls observe for every change of state; see Event. It is
// called by the client's own goroutines, sometimes by several at once: it must
// return soon and must not call the Client.
func WithObserver(observe func(Event)) Option { return func(c *config) { c.observe = observe } }

// WithFollow says which addresses named by a node the client goes to.
// Default: FollowAny.
func WithFollow(f Follow) Option { return func(c *config) { c.follow = f } }

// WithPatience keeps an acquire that waits without bound trying until its
// context ends, instead of reporting ErrNoActive when no node can be reached.
func WithPatience() Option { return func(c *config) { c.patient = true } }

// validate returns every problem of the configuration.
func (c *config) validate() error {
	problems := c.addressProblems()
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	hello := wire.Request{Op: wire.OpHello, Version: wire.Version, Owner: []byte(c.owner), Software: []byte(software)}
	if err := hello.Check(); err != nil {
		bad("WithOwner: %w", err)
	}
	if len(c.auth) > maxAuthBytes {
		bad("WithAuthToken: %d bytes; at most %d", len(c.auth), maxAuthBytes)
	}
	if c.dial == nil {
		bad("WithDialer: nil; leave the option out for TCP")
	}
	if c.log == nil {
		bad("WithLogger: nil; leave the option out for no log")
	}
	if c.follow > FollowConfigured {
		bad("WithFollow: %d; FollowAny or FollowConfigured", c.follow)
	}
	for _, d := range [...]struct {
		name string
		d    time.Duration
	}{
		{"WithReconnect", c.reconnect},
		{"WithReleaseRetry: total", c.releaseFor}, {"WithReleaseRetry: every", c.releaseEvery},
		{"WithPing: every", c.pingEvery}, {"WithPing: timeout", c.pingTimeout},
	} {
		if d.d < time.Millisecond || d.d > maxDuration {
			bad("%s: %v; 1ms to %v", d.name, d.d, maxDuration)
		}
	}
	return errors.Join(problems...)
}

// maxDuration bounds the settings that are added to instants.
const maxDuration = 24 * time.Hour

func (c *config) addressProblems() (problems []error) {
	if len(c.addrs) == 0 || len(c.addrs) > maxAddrs {
		problems = append(problems, fmt.Errorf("addresses: %d; 1 to %d", len(c.addrs), maxAddrs))
	}
	seen := make(map[string]bool)
	for _, addr := range c.addrs {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			problems = append(problems, fmt.Errorf("address %q: write it as host:port, such as 127.0.0.1:7620", addr))
		}
		if seen[addr] {
			problems = append(problems, fmt.Errorf("address %q is there twice", addr))
		}
		seen[addr] = true
	}
	return problems
}

// maxAddrs is far above the 8 nodes of a cluster: a node may have several addresses.
const maxAddrs = 64
