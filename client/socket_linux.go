package client

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall lacks.
const tcpUserTimeout = 18

// setUserTimeout makes the kernel give a connection up whose data is not
// acknowledged for d, even while a write is blocked. A kernel that can't is no
// reason to do without the connection.
func setUserTimeout(nc *net.TCPConn, d time.Duration) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
