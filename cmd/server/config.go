package main

import (
	"holdfast/internal/locks"
)

// config is every setting, by its environment variable: HOLDFAST_ and the field's words. docs/configuration.md is
// made from this struct: the comments become its text, `range`, `oneof` and `form` say what is allowed, and load
// enforces them. A secret can come from the file that NAME_FILE names, and so can what may change while the program
// runs, for it cannot see its environment change: both have the tag `file`.
type config struct {
	// Where to listen for the native protocol (TCP). Without a host, or with 0.0.0.0 or [::], on every address of the
	// machine; port 0 takes a free one. Beyond loopback, switch auth on.
	NativeAddr listenAddr `split_words:"true" default:"127.0.0.1:7620" form:"HOST:PORT"`

	// Where to listen for HTTP: the API and health. As for HOLDFAST_NATIVE_ADDR.
	HTTPAddr listenAddr `split_words:"true" default:"127.0.0.1:7621" form:"HOST:PORT"`

	// The native address that clients are told to come to. By default the one listened on, unless that is every address; in a
	// cluster, the host of this node's entry in HOLDFAST_PEERS with the native port.
	AdvertiseNative reachAddr `split_words:"true" form:"HOST:PORT, not 0.0.0.0 or [::]"`

	// The HTTP addresses that clients are told to come to; of several, the one whose host is the request's. By default the
	// one listened on, unless that is every address; in a cluster, this node's entry in HOLDFAST_PEERS.
	AdvertiseHTTP []reachURL `split_words:"true" form:"http://HOST:PORT, several separated by commas"`

	// This node's name, in answers, logs and HOLDFAST_PEERS. By default the machine's host name.
	Node nodeName `split_words:"true" form:"1 to 63 letters, digits, dots, hyphens, underscores"`

	// Every node of the cluster, this one included, in order of priority, with the address at which the others reach its HTTP
	// port. The same on every node. Empty for a node of its own.
	Peers peerList `split_words:"true" form:"1 to 8 entries NAME=http://HOST:PORT separated by commas"`

	// What the nodes of a cluster prove themselves to each other with; it never travels. The same on every node. To change it,
	// give every node the new one as a second, then as the first of the two, then alone. Read anew at SIGHUP where it comes from a file.
	ClusterSecret secrets `split_words:"true" file:"true" form:"12 to 1024 printable ASCII characters, no blanks; a second one after a comma is accepted too"`

	// The time between two heartbeats to a peer. At most a quarter of HOLDFAST_SUSPICION.
	Heartbeat span `split_words:"true" default:"100ms" range:"10ms..10s"`

	// How long a peer must be silent before it is taken for dead. The same on every node, or nearly.
	Suspicion span `split_words:"true" default:"1s" range:"40ms..1m"`

	// How long a node that starts waits to hear from all its peers before it becomes active without them. Longer than
	// HOLDFAST_SUSPICION.
	StartGrace span `split_words:"true" default:"2s" range:"50ms..10m"`

	// How long a node of higher priority that has come back is in step with the active before it takes over, so that one that
	// comes and goes does not move the service each time.
	TakebackDelay span `split_words:"true" default:"5s" range:"0s..1h"`

	// Whether a node of higher priority that has come back takes over at all. With false it waits until the active goes.
	Preempt choice `split_words:"true" default:"true" oneof:"true, false"`

	// Whether an answer to a client waits until one standby has what it says (ack), or not (async). With ack nothing that was
	// answered is lost when the active dies; with no standby in step the active goes on alone.
	Replication choice `split_words:"true" default:"async" oneof:"async, ack"`

	// How long an acquire with a ticket keeps its place, and a grant made meanwhile is kept for it, after its connection
	// broke. 0 gives both up at once.
	ReattachGrace span `split_words:"true" default:"5s" range:"0s..1h"`

	// A directory, made if its parent exists, where the node keeps the mark that makes fencing tokens rise across
	// restarts even if the clock is set back. One process at a time can use it. Without one, tokens start at the clock.
	DataDir path `split_words:"true" form:"a path"`

	// The lease of a lock whose client asks for none. At most HOLDFAST_MAX_LEASE.
	DefaultLease span `split_words:"true" default:"30s" range:"1ms..1193h"`

	// The longest lease that a client may ask for: how long a client that vanished can block others. Longer ones are refused.
	MaxLease span `split_words:"true" default:"24h" range:"1ms..1193h"`

	// How many keys may be held or waited for at once; more are refused. A held key takes about 200 bytes of memory.
	MaxKeys count `split_words:"true" default:"10000000" range:"1..1000000000"`

	// How many bytes all those keys may have together; more are refused.
	MaxKeyBytes size `split_words:"true" default:"1GiB" range:"1KiB..1TiB"`

	// How many acquires may wait at once; more are refused.
	MaxWaiters count `split_words:"true" default:"1000000" range:"1..1000000000"`

	// How many acquires may wait for one key; more are refused.
	MaxWaitersPerKey count `split_words:"true" default:"200000" range:"1..1000000000"`

	// How many connections may be open at once, of both ports together; more are refused. Each needs a file
	// descriptor (ulimit -n): where there are fewer, that is the bound, and a warning says so.
	MaxConnections count `split_words:"true" default:"50000" range:"1..1000000"`

	// How many of them may come from one address. 0 sets no bound: many clients can share one, behind a proxy for instance.
	MaxConnectionsPerAddress count `split_words:"true" default:"0" range:"0..1000000"`

	// How many requests, queued or with an answer held back, may be pending on one connection; more are refused.
	MaxPending count `split_words:"true" default:"65536" range:"1..1000000"`

	// How many bytes of answers a connection that does not read may pile up before it is cut.
	OutputLimit size `split_words:"true" default:"1MiB" range:"64KiB..1GiB"`

	// How long a TCP connection must be silent before it is probed, and the time between probes. Three unanswered ones end
	// it, and with it the waiting of a client that vanished.
	Keepalive span `split_words:"true" default:"15s" range:"1s..1h"`

	// A token that every client must show, on both ports. Without one, anyone who reaches a port can take and release locks.
	AuthToken secret `split_words:"true" file:"true" form:"12 to 1024 printable ASCII characters, no blanks"`

	// Names by which browsers may reach the HTTP port while auth is off, besides localhost, IP addresses, the host name, the
	// advertised ones and the peers'; * allows any. It keeps a page of the web from reaching the node through a name of its own.
	AllowedHosts []hostName `split_words:"true" form:"host names separated by commas, or *"`

	// Other origins whose pages may change something through the HTTP port.
	TrustedOrigins []origin `split_words:"true" form:"SCHEME://HOST[:PORT], several separated by commas"`

	// Proxies whose X-Forwarded-* headers are believed.
	TrustedProxies []network `split_words:"true" form:"IP addresses or CIDR ranges separated by commas"`

	// What a standby answers to an HTTP request that only the active can serve: where the active is (redirect), or what the
	// active says, which it asks itself (forward), for clients that can't follow a redirect.
	HTTPStandby choice `split_words:"true" default:"redirect" oneof:"redirect, forward"`

	// How much of the dashboard the HTTP port serves: all of it (full), without what changes something (readonly), or none
	// (off). The API is the same with all three.
	UI choice `split_words:"true" default:"full" oneof:"full, readonly, off"`

	// The least level that is logged; debug logs every HTTP request. Read anew at SIGHUP where it comes from a file.
	LogLevel choice `split_words:"true" default:"info" file:"true" oneof:"debug, info, warn, error"`

	// The form of the log, which goes to standard error.
	LogFormat choice `split_words:"true" default:"text" oneof:"text, json"`

	// How long a graceful stop may take in all, from the first signal to the end; after it the process exits with
	// what is left undone. Set the supervisor's own time-out above it.
	StopTimeout span `split_words:"true" default:"15s" range:"100ms..1h"`

	// How long a stopping node serves on after its readiness has turned to 503, so that load balancers notice first. Less
	// than HOLDFAST_STOP_TIMEOUT; 0 for none.
	DrainDelay span `split_words:"true" default:"0s" range:"0s..1h"`
}

// later names the settings whose function is not part of this version. To set one is a mistake that is told, rather
// than silently ignored. The change that brings the function removes the entry.
var later = map[string]string{
	"HOLDFAST_JOURNAL":       "the journal of held locks is not part of this version",
	"HOLDFAST_TOKENS_FILE":   "named tokens are not part of this version: use HOLDFAST_AUTH_TOKEN",
	"HOLDFAST_TLS_CERT":      "TLS is not part of this version",
	"HOLDFAST_TLS_KEY":       "TLS is not part of this version",
	"HOLDFAST_TLS_CA":        "TLS is not part of this version",
	"HOLDFAST_TLS_CLIENT_CA": "TLS is not part of this version",
}

// meansOff is the value of a later setting that asks for what is there anyway.
var meansOff = map[string]string{
	"HOLDFAST_JOURNAL": "off",
}

// table is the part of the settings that bounds the lock table.
func (c *config) table() locks.Config {
	t := locks.DefaultConfig()
	t.DefaultLease = c.DefaultLease.duration()
	t.MaxLease = c.MaxLease.duration()
	t.ReattachGrace = c.ReattachGrace.duration()
	t.MaxKeys = int(c.MaxKeys)
	t.MaxKeyBytes = int64(c.MaxKeyBytes)
	t.MaxWaiters = int(c.MaxWaiters)
	t.MaxWaitersPerKey = int(c.MaxWaitersPerKey)
	t.MaxPending = int(c.MaxPending)
	return t
}
