package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

const secretVar = "HOLDFAST_CLUSTER_SECRET=correct-horse-battery"

// far is a list of nodes on three machines, near one on a single machine.
const (
	far  = "HOLDFAST_PEERS=n1=http://10.0.0.1:7621,n2=http://n2.example:7621,n3=http://[fd00::3]:7621"
	near = "HOLDFAST_PEERS=n1=http://localhost:7621,n2=http://127.0.0.1:7631,n3=http://[::1]:7641"
)

func TestClusterRelations(t *testing.T) {
	for name, c := range map[string]struct {
		vars []string
		want []string
	}{
		"sound":            {[]string{far, secretVar, "HOLDFAST_NODE=n1"}, nil},
		"one machine":      {[]string{near, secretVar, "HOLDFAST_NODE=n3"}, nil},
		"a cluster of one": {[]string{"HOLDFAST_PEERS=n1=http://10.0.0.1:7621", secretVar, "HOLDFAST_NODE=n1"}, nil},
		"no secret": {[]string{far, "HOLDFAST_NODE=n1"},
			[]string{"HOLDFAST_CLUSTER_SECRET: is required with HOLDFAST_PEERS: give every node the same, of at least 12 characters"}},
		"a secret alone": {[]string{secretVar},
			[]string{"HOLDFAST_CLUSTER_SECRET: is set, but HOLDFAST_PEERS is not: list the nodes there, or unset it for a node of its own"}},
		"not in the list": {[]string{far, secretVar, "HOLDFAST_NODE=n4"},
			[]string{`HOLDFAST_NODE: "n4" is not in HOLDFAST_PEERS, which has n1, n2, n3: set the name that this node has there`}},
		"heartbeat": {[]string{"HOLDFAST_HEARTBEAT=251ms"}, []string{"HOLDFAST_HEARTBEAT: 251ms is more than a quarter of HOLDFAST_SUSPICION (1s)"}},
		"a quarter": {[]string{"HOLDFAST_HEARTBEAT=250ms"}, nil},
		"start grace": {[]string{"HOLDFAST_SUSPICION=2s"}, []string{
			"HOLDFAST_START_GRACE: 2s is not longer than HOLDFAST_SUSPICION (2s)"}},
		// C-55
		"loopback, native": {[]string{far, secretVar, "HOLDFAST_NODE=n1", "HOLDFAST_ADVERTISE_NATIVE=localhost:7620"}, []string{
			"HOLDFAST_ADVERTISE_NATIVE: localhost:7620 leads every client to its own machine: name an address of this node that all clients reach"}},
		"loopback, HTTP": {[]string{far, secretVar, "HOLDFAST_NODE=n1", "HOLDFAST_ADVERTISE_HTTP=http://127.0.0.9:7621,http://[::1]:1"}, []string{
			"HOLDFAST_ADVERTISE_HTTP: http://127.0.0.9:7621,http://[::1]:1 leads every client to its own machine: name an address of this node that all clients reach beside it"}},
		"loopback beside another": {[]string{far, secretVar, "HOLDFAST_NODE=n1", "HOLDFAST_ADVERTISE_HTTP=http://localhost:7621,http://n1:7621"}, nil},
		"loopback, as in the list": {[]string{"HOLDFAST_PEERS=n1=http://localhost:7621,n2=http://b:1", secretVar, "HOLDFAST_NODE=n1"}, []string{
			"HOLDFAST_ADVERTISE_HTTP: http://localhost:7621 leads every client to its own machine: name an address of this node that all clients reach beside it",
			"HOLDFAST_ADVERTISE_NATIVE: localhost:7620 leads every client to its own machine: name an address of this node that all clients reach"}},
		"any native port": {[]string{far, secretVar, "HOLDFAST_NODE=n1", "HOLDFAST_NATIVE_ADDR=10.0.0.1:0"}, []string{
			"HOLDFAST_ADVERTISE_NATIVE: is required where HOLDFAST_NATIVE_ADDR (10.0.0.1:0) takes any port and HOLDFAST_PEERS is set"}},
		"too many addresses": {[]string{far, secretVar, "HOLDFAST_NODE=n1", "HOLDFAST_ADVERTISE_HTTP=" + strings.Repeat("http://n1:1,", 8) + "http://n1:1"}, []string{
			"HOLDFAST_ADVERTISE_HTTP: has 9 addresses: with HOLDFAST_PEERS at most 8"}},
		// What has a problem of its own is not compared with others.
		"a bad list": {[]string{"HOLDFAST_PEERS=n1", secretVar, "HOLDFAST_NODE=n9"}, []string{
			`HOLDFAST_PEERS: "n1" has "n1", which is not NAME=http://HOST:PORT; allowed: 1 to 8 entries NAME=http://HOST:PORT separated by commas`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := load(t, c.vars...).problems; !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// With peers clients are sent to where the peers list says, wherever the node listens.
func TestAdvertisedInACluster(t *testing.T) {
	for _, c := range []struct {
		vars         []string
		native, http string
	}{
		{[]string{far, "HOLDFAST_NODE=n1"}, "10.0.0.1:7620", "[http://10.0.0.1:7621]"},
		{[]string{far, "HOLDFAST_NODE=n2", "HOLDFAST_NATIVE_ADDR=:7000", "HOLDFAST_HTTP_ADDR=0.0.0.0:1"}, "n2.example:7000", "[http://n2.example:7621]"},
		{[]string{far, "HOLDFAST_NODE=n3", "HOLDFAST_ADVERTISE_HTTP=http://n3:1"}, "[fd00::3]:7620", "[http://n3:1]"},
		{[]string{far, "HOLDFAST_NODE=n3", "HOLDFAST_ADVERTISE_NATIVE=n3:1"}, "n3:1", "[http://[fd00::3]:7621]"},
	} {
		s := load(t, append(c.vars, secretVar)...)
		if len(s.problems) != 0 || string(s.AdvertiseNative) != c.native || fmt.Sprint(s.AdvertiseHTTP) != c.http {
			t.Errorf("%q: problems %q, advertised %q and %s; want %q and %s", c.vars, s.problems, s.AdvertiseNative, s.AdvertiseHTTP, c.native, c.http)
		}
	}
}

// The names of peers are names by which a browser may come: a redirect leads there.
func TestPeersAreKnownHosts(t *testing.T) {
	hosts := load(t, far, secretVar, "HOLDFAST_NODE=n1").ownHosts()
	for _, want := range []string{"10.0.0.1", "n2.example", "fd00::3"} {
		if !slices.Contains(hosts, want) {
			t.Errorf("%q has no %s", hosts, want)
		}
	}
}

func TestClusterOfANode(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	if c := load(t).cluster(log); c != nil {
		t.Errorf("without peers: %+v", c)
	}
	m := load(t, far, secretVar, "HOLDFAST_NODE=n2", "HOLDFAST_HEARTBEAT=50ms", "HOLDFAST_SUSPICION=500ms", "HOLDFAST_START_GRACE=5s",
		"HOLDFAST_TAKEBACK_DELAY=0", "HOLDFAST_PREEMPT=false", "HOLDFAST_REPLICATION=ack").cluster(log).Machine
	m.Incarnation = 1 // the node's own to set
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	if m.Rank != 1 || !slices.Equal(m.Names, []string{"n1", "n2", "n3"}) || m.Heartbeat != 50*time.Millisecond ||
		m.Suspicion != 500*time.Millisecond || m.StartGrace != 5*time.Second || m.TakeBackDelay != 0 || m.Preempt || !m.Ack {
		t.Errorf("%+v", m)
	}
}
