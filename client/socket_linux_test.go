package client

import (
	"net"
	"syscall"
	"testing"
	"time"
)

func TestBehaviour8TCPUserTimeout(t *testing.T) {
	c := dialReal(t, newEchoServer(t).addr(), WithPing(4*time.Second, 2*time.Second))
	c.mu.Lock()
	nc := c.members[0].nc.(*net.TCPConn)
	c.mu.Unlock()
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout) })
	if err != nil || got != 6000 {
		t.Errorf("%d ms, error %v", got, err)
	}
}
