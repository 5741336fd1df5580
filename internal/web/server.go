package web

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"holdfast/internal/node"
	"holdfast/internal/web/ui"
)

// Config is what the HTTP port needs to know.
type Config struct {
	// Node is the node that this port serves. Required.
	Node *node.Node

	// Log gets requests at debug, authentication failures at warn, faults at
	// error. nil = none.
	Log *slog.Logger

	// Authenticate tells whose secret this is. nil = auth is off: everybody may
	// do everything, and the Host header is checked instead. It is called by many
	// goroutines at once and must take the same time for any wrong secret.
	Authenticate func(secret string) (Identity, bool)

	// Hosts are the names that this node goes by: its host name, those it
	// advertises, its peers'. IP addresses and localhost need not be listed. Ports
	// are ignored. Only used while auth is off.
	Hosts []string

	// AllowedHosts are further such names; "*" = any.
	AllowedHosts []string

	// TrustedOrigins are the origins, as scheme://host[:port], whose pages may
	// change something although they are not of this port's own origin.
	TrustedOrigins []string

	// TrustedProxies are the networks whose X-Forwarded-For and
	// X-Forwarded-Proto are believed.
	TrustedProxies []netip.Prefix

	// Admit is asked for each new connection, by the accepting goroutine: it must
	// not block. It returns what to call once the connection is gone, or false to
	// refuse it. nil = no limit.
	Admit func(remote net.Addr) (gone func(), ok bool)

	// Replica serves peers at ReplicaPath. It takes their connections over, and
	// only those of who has proved to be a peer. Where Admit refuses a connection
	// it may still be one: see replica.go. nil = a node of its own.
	Replica     http.Handler
	ReplicaPath string

	// Standby says what a node that is not the active answers where only that can.
	Standby Standby

	// MaxPending bounds the acquires of one WebSocket that are not answered, or whose
	// late answer is not read. 0 = 65,536, as in the native protocol.
	MaxPending int

	// OutputLimit is how many bytes of answers may wait for a WebSocket's client that
	// does not read them; above it the connection is cut. 0 = 1 MiB.
	OutputLimit int

	// Secrets returns the cluster secrets: forwarded requests are proved with the
	// first, and all are believed. It must not block. nil = none.
	Secrets func() []string

	// UI is what the dashboard shows; New fills in what it has from this port. The
	// zero value is none.
	UI ui.Config
}

// Standby is what a node that is not the active answers where only that can.
type Standby uint8

const (
	Redirect Standby = iota // 307 to the active
	Forward                 // what the active answers
)

// Server is the HTTP port of a node.
type Server struct {
	// Static after construction.
	cfg     Config
	log     *slog.Logger
	node    *node.Node
	origins *originCheck
	handler http.Handler
	http    *http.Server
	// Of the node; a test without a cluster puts its own here.
	active   func() node.ActiveNode
	members  func() []node.Member
	handOver func(to string) node.HandoffResult
	// What leads to this node itself, as endpoint writes it.
	own        map[string]bool
	forwarding *http.Transport
	// What the node was configured with, for answers.
	maxLease time.Duration
	grace    time.Duration

	authLog  throttle
	admitLog throttle
	reserve  reserve
	fresh    fresh
	sockets  sockets
	stats    sampler

	polls    context.Context // ends when long polls are to
	endPolls context.CancelFunc
}

// New makes the HTTP port of cfg.Node. An error names what is wrong with cfg.
func New(cfg Config) (*Server, error) {
	origins, err := newOriginCheck(cfg.TrustedOrigins)
	if err != nil {
		return nil, err
	}
	cfg.MaxPending, cfg.OutputLimit = cmp.Or(cfg.MaxPending, wsMaxPending), cmp.Or(cfg.OutputLimit, wsOutputLimit)
	status := cfg.Node.Status()
	s := &Server{
		cfg: cfg, log: cfg.Log, node: cfg.Node, origins: origins,
		active: cfg.Node.Active, members: cfg.Node.Members, handOver: cfg.Node.Handoff,
		own: map[string]bool{}, forwarding: newForwarding(),
		maxLease: status.MaxLease, grace: status.ReattachGrace,
	}
	s.polls, s.endPolls = context.WithCancel(context.Background())
	for _, text := range status.HTTP {
		if u, err := url.Parse(text); err == nil {
			s.own[endpoint(u)] = true
		}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.handler = s.front(s.routes())
	s.http = s.newHTTP()
	return s, nil
}

// Handler returns all that the port serves.
func (s *Server) Handler() http.Handler { return s.handler }

const (
	headerTimeout = 10 * time.Second // for a whole request header
	idleTimeout   = 2 * time.Minute  // between two requests of a connection
	writeSlack    = 30 * time.Second // for the answer, after the longest poll

	// maxHeaderBytes leaves room for a key, an owner and a filter of the longest,
	// every byte of them escaped. net/http adds 4 KiB.
	maxHeaderBytes = 16 << 10
)

// newHTTP makes the http.Server. A time limit on reading as a whole would cut
// long polls; bodies have their own, see readBody.
func (s *Server) newHTTP() *http.Server {
	srv := &http.Server{
		Handler:                      s.handler,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  idleTimeout,
		WriteTimeout:                 bodyTimeout + maxPoll + writeSlack,
		MaxHeaderBytes:               maxHeaderBytes,
		ConnContext:                  withConn,
		ConnState:                    s.fresh.follow,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	srv.RegisterOnShutdown(s.fresh.close)
	return srv
}

// Serve accepts connections until Shutdown, and then returns nil. An error is
// the listener's.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.http.Serve(&listener{Listener: ln, server: s}); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// EndPolls answers every acquire that waits now, here or at the active, and every
// later one that would have to: 503, unavailable. It returns at once and may be called twice.
func (s *Server) EndPolls() { s.endPolls() }

// Shutdown ends the long polls, stops accepting and waits until every request
// is answered; then it ends the WebSockets. When ctx ends first it cuts off what is left and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.EndPolls()
	err := s.http.Shutdown(ctx)
	s.sockets.shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	s.forwarding.CloseIdleConnections()
	return err
}
