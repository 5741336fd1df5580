package native

import (
	"log/slog"
	"net/netip"
	"time"

	"holdfast/internal/node"
)

// Config is what a server needs to know. Start from DefaultConfig; a zero
// field is taken for what it says, not for the default.
type Config struct {
	Node     *node.Node
	Software string // name and version of the program, told in the welcome
	HTTPHint string // address that speaks HTTP, for those who speak it here; empty = none is named

	// MaxPending bounds the requests that one connection has pending: queued
	// acquires and answers held back by ordered mode. The table has the same
	// bound on the queued ones alone.
	MaxPending int

	// OutputLimit is how many bytes of answers may wait for a client that does
	// not read them, on top of what the sockets hold; above it the connection is
	// cut.
	OutputLimit int

	HelloTimeout time.Duration // from the accept until the hello is accepted
	FrameTimeout time.Duration // from the first byte of a later frame to its last
	FlushTimeout time.Duration // for the last answers before a close
	DrainTimeout time.Duration // for what a client still sends once it was told that the connection ends
	DrainBytes   int           // the same, in bytes

	// Keepalive is the idle time before TCP keepalive asks, and the interval
	// between its three questions. 0 = the operating system's settings.
	Keepalive time.Duration

	// Authenticate judges the auth token of a hello, in constant time, and names
	// its identity. nil = auth is off. It must not keep auth.
	Authenticate func(auth []byte) (identity string, ok bool)

	// Admit asks whether one more connection from remote may be served; release
	// is called once that connection is gone. nil = no bound.
	Admit func(remote netip.Addr) (release func(), ok bool)

	Logger *slog.Logger
}

// DefaultConfig returns the settings of a server for n that was configured
// with nothing.
func DefaultConfig(n *node.Node) Config {
	return Config{
		Node:         n,
		Software:     "holdfastd",
		MaxPending:   65_536,
		OutputLimit:  1 << 20,
		HelloTimeout: 10 * time.Second,
		FrameTimeout: 30 * time.Second,
		FlushTimeout: 5 * time.Second,
		DrainTimeout: time.Second,
		DrainBytes:   64 << 10,
		Keepalive:    15 * time.Second,
		Logger:       slog.New(slog.DiscardHandler),
	}
}
