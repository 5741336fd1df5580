package native

import (
	"fmt"
	"net"
	"time"
)

// keepaliveMisses is how many questions of TCP keepalive may go unanswered.
const keepaliveMisses = 3

// setKeepalive lets the kernel find a dead client: one that is idle by asking,
// one that owes an acknowledgement by the same time without it, instead of the
// quarter of an hour that retransmission would take. Nagle is off by default.
func setKeepalive(tc *net.TCPConn, every time.Duration) error {
	if every <= 0 {
		return nil
	}
	err := tc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: keepaliveMisses})
	if err != nil {
		return fmt.Errorf("set keepalive: %w", err)
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return fmt.Errorf("set user timeout: %w", err)
	}
	if ctl := raw.Control(func(fd uintptr) { err = setUserTimeout(fd, (1+keepaliveMisses)*every) }); ctl != nil {
		err = ctl
	}
	if err != nil {
		return fmt.Errorf("set user timeout: %w", err)
	}
	return nil
}
