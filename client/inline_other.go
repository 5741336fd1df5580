//go:build !unix

package client

import (
	"errors"
	"net"
)

// inlineWriter is not to be had here: every write goes to the writer goroutine.
type inlineWriter struct{}

func newInlineWriter(net.Conn) *inlineWriter { return nil }

func (*inlineWriter) write([]byte) (int, error) { return 0, errors.ErrUnsupported }
