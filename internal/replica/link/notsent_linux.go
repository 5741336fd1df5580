package link

import "syscall"

const tcpNotSentLowat = 25 // TCP_NOTSENT_LOWAT of linux/tcp.h

func setNotSent(fd uintptr, bytes int) error {
	return syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, bytes)
}
