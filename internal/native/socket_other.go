//go:build !unix

package native

import (
	"errors"
	"net"
	"syscall"
)

// plainTCP returns nil: connections are read and written through package net.
func plainTCP(net.Conn) syscall.RawConn { return nil }

func readNow(uintptr, []byte) (int, bool, error) { return 0, false, errors.ErrUnsupported }

func writeNow(uintptr, []byte) (int, bool, error) { return 0, false, errors.ErrUnsupported }
