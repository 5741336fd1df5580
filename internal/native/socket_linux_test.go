package native

import (
	"net"
	"syscall"
	"testing"
)

// The kernel is told to look for dead clients, and not to wait for more to send.
func TestSocketOptions(t *testing.T) {
	f := start(t, loopback)
	f.greet("c")
	options := []struct {
		name                string
		level, option, want int
	}{
		{"SO_KEEPALIVE", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15},
		{"TCP_KEEPINTVL", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 15},
		{"TCP_KEEPCNT", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
		{"TCP_USER_TIMEOUT", syscall.IPPROTO_TCP, tcpUserTimeout, 60_000},
		{"TCP_NODELAY", syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
	}
	f.eachConn(func(c *conn) {
		raw, err := c.nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			for _, o := range options {
				if got, err := syscall.GetsockoptInt(int(fd), o.level, o.option); err != nil || got != o.want {
					t.Errorf("%s is %d (%v), want %d", o.name, got, err, o.want)
				}
			}
		})
	})
}
