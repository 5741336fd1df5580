package web

import (
	"net"
	"sync"
	"time"
)

// listener asks Config.Admit about each connection.
type listener struct {
	net.Listener
	server *Server
}

const refusal = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 37\r\n\r\nthe limit on connections is reached.\n"

// Accept returns the next connection that is admitted.
func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil || l.server.cfg.Admit == nil {
			return nc, err
		}
		gone, ok := l.server.cfg.Admit(nc.RemoteAddr())
		if ok {
			return &admitted{Conn: nc, gone: gone}, nil
		}
		if skipped, ok := l.server.admitLog.allow(time.Now()); ok {
			l.server.log.Warn("connection refused: HOLDFAST_MAX_CONNECTIONS or HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS is reached",
				"event", "limit", "remote", nc.RemoteAddr().String(), "skipped", skipped)
		}
		// A new socket's buffer takes this without blocking; the deadline is for the
		// day when that is not so.
		nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		nc.Write([]byte(refusal))
		nc.Close()
	}
}

// admitted is a connection that Admit counts.
type admitted struct {
	net.Conn
	once sync.Once
	gone func()
}

// Close closes the connection and tells Admit's function, once.
func (c *admitted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.gone)
	return err
}
