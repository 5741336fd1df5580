package link

import (
	"net"
	"syscall"
	"testing"
)

// Both ends of a link hold little that could not be sent yet.
func TestNotSent(t *testing.T) {
	p := newPair(t, nil, nil)
	p.toldA.next(t, "up 1 dialled")
	p.toldB.next(t, "up 1 accepted")
	for name, tr := range map[string]*Transport{"dialler": p.a, "acceptor": p.b} {
		rc, err := tr.link(1).raw.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		rc.Control(func(fd uintptr) {
			if n, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat); n != notSentBytes {
				t.Errorf("%s: %d bytes, %v; want %d", name, n, err, notSentBytes)
			}
		})
	}
}
