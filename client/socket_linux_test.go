package client

import (
	"net"
	"syscall"
	"testing"
	"time"
)

func TestBehaviour8TCPUserTimeout(t *testing.T) {
	c := dialReal(t, newEchoServer(t).addr(), WithPing(4*time.Second, 2*time.Second))
	raw, err := c.pick().nc.(*net.TCPConn).SyscallConn() // one of the two may not stand yet
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout) })
	if err != nil || got != 6000 {
		t.Errorf("%d ms, error %v", got, err)
	}
}
