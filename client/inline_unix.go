//go:build unix

package client

import (
	"net"
	"syscall"
)

// inlineWriter writes to a socket without blocking. It is used by one
// goroutine at a time.
type inlineWriter struct {
	raw syscall.RawConn
	try func(fd uintptr) bool

	// The write that try is to do, and its outcome.
	b   []byte
	n   int
	err error
}

// newInlineWriter returns nil unless nc is a plain socket: a type that merely
// embeds one may do something else on Write.
func newInlineWriter(nc net.Conn) *inlineWriter {
	var sc syscall.Conn
	switch nc := nc.(type) {
	case *net.TCPConn:
		sc = nc
	case *net.UnixConn:
		sc = nc
	default:
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	w := &inlineWriter{raw: raw}
	w.try = w.tryWrite
	return w
}

// write writes as much of b as the socket takes now.
func (w *inlineWriter) write(b []byte) (n int, err error) {
	w.b, w.n, w.err = b, 0, nil
	if err := w.raw.Write(w.try); err != nil {
		return 0, err
	}
	return w.n, w.err
}

// tryWrite always returns true: false would wait until the socket is writable.
func (w *inlineWriter) tryWrite(fd uintptr) bool {
	for w.n < len(w.b) {
		n, err := syscall.Write(int(fd), w.b[w.n:])
		switch {
		case err == nil:
			w.n += n
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return true
		default:
			w.err = err
			return true
		}
	}
	return true
}
