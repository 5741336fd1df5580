//go:build unix

package native

import (
	"io"
	"net"
	"syscall"
)

// plainTCP returns access to the socket of nc, nil if bytes do not go to a
// socket as they are.
func plainTCP(nc net.Conn) syscall.RawConn {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// readNow reads what is there. again: nothing is, wait.
func readNow(fd uintptr, p []byte) (n int, again bool, err error) {
	n, again, err = retry(syscall.Read, fd, p)
	if n == 0 && !again && err == nil {
		err = io.EOF
	}
	return n, again, err
}

// writeNow writes what the socket takes. again: it is full, wait.
func writeNow(fd uintptr, p []byte) (n int, again bool, err error) {
	return retry(syscall.Write, fd, p)
}

func retry(call func(int, []byte) (int, error), fd uintptr, p []byte) (n int, again bool, err error) {
	for {
		n, err = call(int(fd), p)
		switch err {
		case nil:
			return n, false, nil
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return 0, true, nil
		}
		return 0, false, err
	}
}
