package session

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"holdfast/wire"
)

// ErrClosedByServer means that the server closed the connection while an
// answer was due.
var ErrClosedByServer = errors.New("the server closed the connection")

// ErrNotHoldfast means that something else than Holdfast's native protocol is
// spoken at an address; the error around it says what, and what to do.
var ErrNotHoldfast = errors.New("not Holdfast's native protocol")

// Refusal is a request that the server answered with an error.
type Refusal struct {
	Code    wire.Code
	Message string // the server's own words
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("%s (error %d)", e.Message, e.Code)
}

func refusal(r *wire.Reply) *Refusal {
	return &Refusal{Code: r.Code, Message: string(r.Message)}
}

// hintForeign explains err when the bytes read come from another protocol.
func hintForeign(in []byte, err error) error {
	switch {
	case bytes.HasPrefix(in, []byte("HTTP")):
		return fmt.Errorf("%w: this is an HTTP port; give the native one (7620 by default)", ErrNotHoldfast)
	case bytes.HasPrefix(in, []byte{0x15, 0x03}): // a TLS alert record
		return fmt.Errorf("%w: this port wants TLS; add --tls", ErrNotHoldfast)
	}
	return err
}

// hintSilence explains a connection that was closed before the first answer.
func hintSilence(err error, tls bool) error {
	if errors.Is(err, ErrClosedByServer) && !tls {
		return fmt.Errorf("%w; if that port wants TLS, add --tls", err)
	}
	return err
}

// hintTLS explains a handshake that failed because the server speaks plain TCP.
func hintTLS(err error) error {
	var header tls.RecordHeaderError
	if errors.As(err, &header) {
		return fmt.Errorf("%w: this port speaks no TLS; leave the --tls flags out", ErrNotHoldfast)
	}
	return err
}

// bare takes off what package net says about the connection: the address is
// named by whoever reports the error.
func bare(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}
