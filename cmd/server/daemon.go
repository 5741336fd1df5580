package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"holdfast/internal/locks"
	"holdfast/internal/mark"
	"holdfast/internal/native"
	"holdfast/internal/node"
	"holdfast/internal/replica/link"
	"holdfast/internal/web"
)

// daemon is a running node and what belongs to it.
type daemon struct {
	// Static after build.
	cfg    *config
	log    *slog.Logger
	level  *slog.LevelVar
	auth   *authenticator // nil: auth is off
	dir    *mark.Dir      // nil: no data directory
	node   *node.Node
	past   *node.History
	links  *link.Transport // nil: a node of its own
	native *native.Server
	web    *web.Server
	tcp    net.Listener
	http   net.Listener

	secrets atomic.Pointer[[]string] // of the cluster, for those who prove themselves

	running    sync.WaitGroup     // every goroutine that start makes
	stopTimers context.CancelFunc // ends those that nothing else ends
	stopLinks  context.CancelFunc
	linksEnded chan struct{}
	failed     chan error // of a part that ended by itself; has room for each of them
}

// build makes a daemon from the inside out. What it opened before an error it closes.
func build(s *settings, log *slog.Logger) (*daemon, error) {
	d := &daemon{cfg: &s.config, log: log.With("component", "server"), failed: make(chan error, 4)}
	if s.AuthToken != "" {
		d.auth = newAuthenticator(s.AuthToken)
	}
	d.replaceSecrets(s.ClusterSecret)
	err := d.openNode(log)
	if err == nil {
		err = d.buildLinks(log)
	}
	if err == nil {
		err = d.listen()
	}
	if err == nil {
		err = d.buildPorts(s, log)
	}
	if err != nil {
		d.closeAll()
		return nil, err
	}
	return d, nil
}

// openNode makes the node that goes on above the mark of its data directory. The mark is moved ahead before anyone can
// take a token: were the ports open first, a crash within the first second would leave tokens above the mark.
func (d *daemon) openNode(log *slog.Logger) error {
	var kept uint64
	if d.cfg.DataDir != "" {
		var err error
		if d.dir, kept, err = mark.Open(string(d.cfg.DataDir)); err != nil {
			return fmt.Errorf("HOLDFAST_DATA_DIR: %w", err)
		}
	}
	var urls []string
	for _, u := range d.cfg.AdvertiseHTTP {
		urls = append(urls, string(u))
	}
	var err error
	d.node, err = node.New(node.Config{
		Name: string(d.cfg.Node), Version: version,
		Native: string(d.cfg.AdvertiseNative), HTTP: urls,
		Table: d.cfg.table(), Mark: locks.Token(kept), Cluster: d.cfg.cluster(log),
	})
	if err != nil {
		return err
	}
	d.past = node.NewHistory(d.node)
	if d.dir == nil {
		return nil
	}
	if err := d.dir.Store(d.markAhead()); err != nil {
		return fmt.Errorf("HOLDFAST_DATA_DIR: %w", err)
	}
	return nil
}

func (d *daemon) markAhead() uint64 { return uint64(d.node.MarkAhead(mark.Ahead)) }

// listen opens both ports.
func (d *daemon) listen() (err error) {
	keepalive := net.KeepAliveConfig{
		Enable: true, Idle: d.cfg.Keepalive.duration(), Interval: d.cfg.Keepalive.duration(), Count: 3,
	}
	lc := net.ListenConfig{KeepAliveConfig: keepalive}
	// Multipath TCP is Go's default for listeners and brings nothing here, but sockets that know fewer options.
	lc.SetMultipathTCP(false)
	if d.tcp, err = lc.Listen(context.Background(), "tcp", string(d.cfg.NativeAddr)); err != nil {
		return fmt.Errorf("HOLDFAST_NATIVE_ADDR: %w", err)
	}
	if d.http, err = lc.Listen(context.Background(), "tcp", string(d.cfg.HTTPAddr)); err != nil {
		return fmt.Errorf("HOLDFAST_HTTP_ADDR: %w", err)
	}
	return nil
}

// buildPorts makes what serves the two ports.
func (d *daemon) buildPorts(s *settings, log *slog.Logger) (err error) {
	admission := newAdmission(connectionLimit(int(d.cfg.MaxConnections)), int(d.cfg.MaxConnectionsPerAddress))

	tcp := native.DefaultConfig(d.node)
	tcp.Software = "holdfastd/" + version
	tcp.HTTPHint = d.http.Addr().String()
	tcp.MaxPending = int(d.cfg.MaxPending)
	tcp.OutputLimit = int(d.cfg.OutputLimit)
	tcp.Keepalive = d.cfg.Keepalive.duration()
	tcp.Admit = admission.admit
	tcp.Logger = log.With("component", "native")

	http := web.Config{
		Node:         d.node,
		Log:          log.With("component", "web"),
		Hosts:        d.cfg.ownHosts(),
		AllowedHosts: texts(d.cfg.AllowedHosts), TrustedOrigins: texts(d.cfg.TrustedOrigins),
		Admit:      admission.admitHTTP,
		MaxPending: int(d.cfg.MaxPending), OutputLimit: int(d.cfg.OutputLimit),
	}
	if d.links != nil {
		http.Replica, http.ReplicaPath = d.links, link.Path
		http.Secrets = d.clusterSecrets
		if d.cfg.HTTPStandby == "forward" {
			http.Standby = web.Forward
		}
	}
	for _, p := range d.cfg.TrustedProxies {
		http.TrustedProxies = append(http.TrustedProxies, netip.Prefix(p))
	}
	http.UI = s.dashboard(d.past)
	if d.auth != nil {
		tcp.Authenticate, http.Authenticate = d.auth.native, d.auth.web
	}
	d.native = native.New(tcp)
	d.web, err = web.New(http)
	return err
}

func texts[T ~string](list []T) []string {
	var plain []string
	for _, item := range list {
		plain = append(plain, string(item))
	}
	return plain
}

// start sets everything in motion and says so.
func (d *daemon) start() {
	timers, cancel := context.WithCancel(context.Background())
	d.stopTimers = cancel
	d.running.Go(func() { _ = d.node.Run(timers) }) // ends with timers and for no other reason
	d.running.Go(func() { d.past.Run(timers) })
	d.running.Go(func() { giveMemoryBack(timers, d.node) })
	if d.dir != nil {
		d.running.Go(func() { d.dir.Keep(timers, d.node.Leapt(), d.markAhead, d.markTrouble) })
	}
	if d.links != nil {
		d.runLinks() // before the port that peers come to: it would turn them away
	}
	d.running.Go(func() { d.report("native port", d.native.Serve(timers, d.tcp)) })
	d.running.Go(func() { d.report("HTTP port", d.web.Serve(d.http)) })
	d.announce()
}

// report tells wait that a part ended although nobody stopped it.
func (d *daemon) report(part string, err error) {
	if err != nil {
		d.failed <- fmt.Errorf("%s: %w", part, err)
	}
}

// markTrouble logs that the mark cannot be stored, or can be again. Grants go on meanwhile: the mark is needed only if
// the clock was set back when the node starts next.
func (d *daemon) markTrouble(err error) {
	if err == nil {
		d.log.Info("the token mark can be stored again", "event", "mark")
		return
	}
	d.log.Error("the token mark cannot be stored: grants go on, but a restart with the clock set back could repeat tokens",
		"event", "mark", "err", err)
}

// announce writes the start line, and warns of what an operator may not have meant.
func (d *daemon) announce() {
	auth := "off"
	if d.auth != nil {
		auth = "on"
	}
	line := d.log.With("version", version, "native", d.tcp.Addr().String(), "http", d.http.Addr().String(),
		"auth", auth, "data_dir", string(d.cfg.DataDir), "pid", os.Getpid())
	if d.links != nil {
		line = line.With("rank", d.cfg.Peers.rank(d.cfg.Node), "peers", strings.Join(d.cfg.Peers.names(), ","))
	}
	line.Info("started")
	d.warnHidden()
	if d.auth == nil && !(isLoopback(d.tcp) && isLoopback(d.http)) {
		d.log.Warn("NO AUTH: whoever reaches these ports can take and release every lock; set HOLDFAST_AUTH_TOKEN or listen on loopback",
			"event", "auth", "native", d.tcp.Addr().String(), "http", d.http.Addr().String())
	}
	if wanted := int(d.cfg.MaxConnections); connectionLimit(wanted) < wanted {
		d.log.Warn("the limit on file descriptors allows fewer connections than HOLDFAST_MAX_CONNECTIONS: raise ulimit -n",
			"event", "limit", "connections", connectionLimit(wanted), "wanted", wanted)
	}
}

func isLoopback(ln net.Listener) bool {
	addr, ok := ln.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// closeAll gives back what build opened.
func (d *daemon) closeAll() {
	for _, ln := range []net.Listener{d.tcp, d.http} {
		if ln != nil {
			_ = ln.Close()
		}
	}
	if d.dir != nil {
		_ = d.dir.Close()
	}
}
