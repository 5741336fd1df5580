package main

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"holdfast/internal/replica"
	"holdfast/internal/replica/link"
)

// buildLinks makes what carries messages between this node and its peers.
func (d *daemon) buildLinks(log *slog.Logger) (err error) {
	if len(d.cfg.Peers) == 0 {
		return nil
	}
	cfg := link.Config{
		Rank: replica.Rank(d.cfg.Peers.rank(d.cfg.Node)), Secrets: d.clusterSecrets,
		Timeout: d.cfg.Suspicion.duration(), Pace: asyncPace, Log: log.With("component", "link"),
	}
	if d.cfg.Replication == "ack" {
		cfg.Pace = ackPace
	}
	for _, p := range d.cfg.Peers {
		cfg.Peers = append(cfg.Peers, link.Peer{Name: string(p.name), URL: string(p.url)})
	}
	if d.links, err = link.New(cfg); err != nil {
		return err
	}
	d.node.Connect(d.links)
	return nil
}

// The least time between two messages of events to a standby: under load it is how far a standby is behind, and with ack
// what an answer waits for besides the way there and back.
const (
	asyncPace = 2 * time.Millisecond
	ackPace   = 200 * time.Microsecond
)

// clusterSecrets are those that count now: SIGHUP may change them.
func (d *daemon) clusterSecrets() []string { return *d.secrets.Load() }

// replaceSecrets makes those the cluster secrets that count, and says whether they differ from the ones before. Links
// that stand, stay.
func (d *daemon) replaceSecrets(s secrets) (changed bool) {
	fresh := s.plain()
	old := d.secrets.Swap(&fresh)
	return old != nil && !slices.Equal(*old, fresh)
}

// runLinks carries messages until shutdown ends it.
func (d *daemon) runLinks() {
	d.linksEnded = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	d.stopLinks = cancel
	d.running.Go(func() {
		defer close(d.linksEnded)
		d.report("peer links", d.links.Run(ctx, d.node))
	})
}

// endLinks closes the links and waits until nothing more comes of them.
func (d *daemon) endLinks() {
	if d.links == nil {
		return
	}
	d.stopLinks()
	<-d.linksEnded
}

// warnHidden tells of ports that only this machine reaches, although the peers list sends others here.
func (d *daemon) warnHidden() {
	own, listed := d.cfg.own()
	if !listed || isLoopbackHost(own.host()) {
		return
	}
	for _, port := range []struct {
		setting string
		ln      net.Listener
	}{{"HOLDFAST_NATIVE_ADDR", d.tcp}, {"HOLDFAST_HTTP_ADDR", d.http}} {
		if isLoopback(port.ln) {
			d.log.Warn("only this machine reaches an address, but HOLDFAST_PEERS names another for the others to come to",
				"event", "hidden", "setting", port.setting, "address", port.ln.Addr().String(), "peers_entry", own.String())
		}
	}
}
