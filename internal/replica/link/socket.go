package link

import (
	"net"
	"syscall"
)

// notSentBytes is how much the kernel may hold of what it could not send yet: a
// heartbeat waits behind that as well. What is in flight does not count, so the
// throughput is not touched.
const notSentBytes = 2 * pieceBytes

// tune sets the options of a socket. Where it has none, as in tests, nothing is
// lost but the promptness of heartbeats on a slow path.
func tune(nc net.Conn) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return
	}
	rc.Control(func(fd uintptr) { setNotSent(fd, notSentBytes) })
}
