//go:build !linux

package client

import (
	"net"
	"time"
)

// setUserTimeout has nothing to set here: pings find dead connections alone.
func setUserTimeout(*net.TCPConn, time.Duration) {}
