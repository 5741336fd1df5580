package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"holdfast/internal/replica"
)

// Path is where a node's HTTP port has to serve its Transport.
const Path = "/internal/v1/replica"

// Config is what a transport needs to know.
type Config struct {
	// Rank is this node's index in Peers.
	Rank replica.Rank

	// Peers is every node of the cluster by rank, this one included. 1 to replica.MaxNodes.
	Peers []Peer

	// Secrets returns the cluster secrets: the first is proved with, all are
	// accepted; with none nobody is. It is called in each handshake, by several
	// goroutines at once, and must not block. Required.
	Secrets func() []string

	// TLS returns what https peers are dialled with, for each dial anew, so that
	// certificates can be reloaded. It is not changed. nil = Go's defaults.
	TLS func() *tls.Config

	// Timeout bounds a handshake and each write: the suspicion time of the
	// cluster. Above 0.
	Timeout time.Duration

	// Pace is the least time between two bulk messages on a link, but for large
	// ones. 0 = none. A millisecond or two cost a standby that much lag under load
	// and save most of the work; where answers wait for its word, less is better.
	Pace time.Duration

	// Log gets links that come and go at info, refusals at warn, dials that fail
	// at debug. nil = none.
	Log *slog.Logger

	// Wall is the wall clock, for the time in proofs. nil = time.Now.
	Wall func() time.Time

	// Dial connects to host:port within the context's time. An error that is
	// ECONNREFUSED says that nobody listens there. nil = TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Peer is a node of the list.
type Peer struct {
	Name string // 1 to 255 bytes
	URL  string // of its HTTP port; this node's own is not used
}

// Validate returns all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	if n := len(c.Peers); n < 1 || n > replica.MaxNodes {
		errs = append(errs, fmt.Errorf("peers list: has %d nodes; give 1 to %d", n, replica.MaxNodes))
	}
	if c.Rank < 0 || int(c.Rank) >= len(c.Peers) {
		errs = append(errs, fmt.Errorf("rank %d: must be an index of the peers list", c.Rank))
	}
	for i, p := range c.Peers {
		if n := len(p.Name); n < 1 || n > maxNameBytes {
			errs = append(errs, fmt.Errorf("peers list: a name of %d bytes; give 1 to %d", n, maxNameBytes))
		}
		if i == int(c.Rank) {
			continue
		}
		if _, err := parseAddress(p.URL); err != nil {
			errs = append(errs, fmt.Errorf("peers list: node %q: %w", p.Name, err))
		}
	}
	if c.Secrets == nil {
		errs = append(errs, errors.New("cluster secret: required"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("suspicion time %v: must be above 0", c.Timeout))
	}
	return errors.Join(errs...)
}

// address is where a peer listens.
type address struct {
	url    string // of the replica endpoint
	dial   string // host:port
	host   string // the name that its certificate must have
	secure bool
}

func parseAddress(s string) (address, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return address{}, fmt.Errorf("address %q: give http://host:port or https://host:port", s)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return address{}, errors.New("address: give no user, query or fragment, just http://host:port or https://host:port")
	}
	a := address{host: u.Hostname(), secure: u.Scheme == "https"}
	port := u.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[a.secure]
	}
	a.dial = net.JoinHostPort(a.host, port)
	u.Path = strings.TrimSuffix(u.Path, "/") + Path
	a.url = u.String()
	return a, nil
}
