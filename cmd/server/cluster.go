package main

import (
	"log/slog"
	"strings"

	"holdfast/internal/node"
	"holdfast/internal/replica"
)

// maxAdvertised is how many addresses a node can tell its peers.
const maxAdvertised = 8

// own is this node's entry in the peers list. Only where the node is one of several.
func (c *config) own() (peer, bool) {
	if i := c.Peers.rank(c.Node); i >= 0 {
		return c.Peers[i], true
	}
	return peer{}, false
}

// deriveAdvertised fills in where clients of a cluster are sent: to where the others reach this node, for that is known
// to be no address of this machine alone.
func (s *settings) deriveAdvertised() {
	own, listed := s.own()
	if !listed {
		return
	}
	if len(s.AdvertiseHTTP) == 0 {
		s.AdvertiseHTTP = []reachURL{own.url}
	}
	if _, port, err := splitAddr(string(s.NativeAddr)); s.AdvertiseNative == "" && err == nil && port != 0 {
		s.AdvertiseNative = own.onPort(port)
	}
}

// checkCluster reports what does not fit together in the settings of a cluster.
func (s *settings) checkCluster() {
	if s.sound("HOLDFAST_HEARTBEAT", "HOLDFAST_SUSPICION") && 4*s.Heartbeat > s.Suspicion {
		s.problem("HOLDFAST_HEARTBEAT", "%s is more than a quarter of HOLDFAST_SUSPICION (%s)", s.Heartbeat, s.Suspicion)
	}
	if s.sound("HOLDFAST_START_GRACE", "HOLDFAST_SUSPICION") && s.StartGrace <= s.Suspicion {
		s.problem("HOLDFAST_START_GRACE", "%s is not longer than HOLDFAST_SUSPICION (%s)", s.StartGrace, s.Suspicion)
	}
	if !s.sound("HOLDFAST_PEERS") {
		return
	}
	s.checkSecret()
	if len(s.Peers) == 0 {
		return
	}
	if _, listed := s.own(); s.sound("HOLDFAST_NODE") && s.Node != "" && !listed {
		s.problem("HOLDFAST_NODE", "%q is not in HOLDFAST_PEERS, which has %s: set the name that this node has there",
			string(s.Node), strings.Join(s.Peers.names(), ", "))
		return
	}
	s.checkAdvertised()
}

// checkSecret wants a secret with peers and none without: a node that has lost its list would serve beside the others as
// if it were alone.
func (s *settings) checkSecret() {
	switch {
	case !s.sound("HOLDFAST_CLUSTER_SECRET"):
	case len(s.Peers) > 0 && len(s.ClusterSecret) == 0:
		s.problem("HOLDFAST_CLUSTER_SECRET", "is required with HOLDFAST_PEERS: give every node the same, of at least 12 characters")
	case len(s.Peers) == 0 && len(s.ClusterSecret) > 0:
		s.problem("HOLDFAST_CLUSTER_SECRET", "is set, but HOLDFAST_PEERS is not: list the nodes there, or unset it for a node of its own")
	}
}

// checkAdvertised reports addresses that lead a client of another machine nowhere.
func (s *settings) checkAdvertised() {
	if s.sound("HOLDFAST_ADVERTISE_HTTP") {
		s.checkAdvertisedHTTP()
	}
	if !s.sound("HOLDFAST_ADVERTISE_NATIVE", "HOLDFAST_NATIVE_ADDR", "HOLDFAST_NODE") { // the node's entry is the default
		return
	}
	host, _, _ := splitAddr(string(s.AdvertiseNative))
	switch {
	case s.AdvertiseNative == "":
		s.problem("HOLDFAST_ADVERTISE_NATIVE", "is required where HOLDFAST_NATIVE_ADDR (%s) takes any port and HOLDFAST_PEERS is set", s.NativeAddr)
	case isLoopbackHost(host) && !s.Peers.onLoopback():
		s.problem("HOLDFAST_ADVERTISE_NATIVE", "%s leads every client to its own machine: name an address of this node that all clients reach", s.AdvertiseNative)
	}
}

func (s *settings) checkAdvertisedHTTP() {
	if n := len(s.AdvertiseHTTP); n > maxAdvertised {
		s.problem("HOLDFAST_ADVERTISE_HTTP", "has %d addresses: with HOLDFAST_PEERS at most %d", n, maxAdvertised)
	}
	if s.Peers.onLoopback() {
		return
	}
	for _, u := range s.AdvertiseHTTP {
		if !isLoopbackHost(hostOf(u)) {
			return
		}
	}
	s.problem("HOLDFAST_ADVERTISE_HTTP", "%s leads every client to its own machine: name an address of this node that all clients reach beside it",
		strings.Join(texts(s.AdvertiseHTTP), ","))
}

// cluster is what a node needs to know of its cluster; nil for a node of its own.
func (c *config) cluster(log *slog.Logger) *node.Cluster {
	if len(c.Peers) == 0 {
		return nil
	}
	m := replica.DefaultConfig()
	m.Rank, m.Names = replica.Rank(c.Peers.rank(c.Node)), c.Peers.names()
	m.Heartbeat, m.Suspicion = c.Heartbeat.duration(), c.Suspicion.duration()
	m.StartGrace, m.TakeBackDelay = c.StartGrace.duration(), c.TakebackDelay.duration()
	m.Preempt, m.Ack = c.Preempt == "true", c.Replication == "ack"
	return &node.Cluster{Machine: m, Log: log.With("component", "cluster")}
}
