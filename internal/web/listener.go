package web

import (
	"net"
	"sync"
	"time"

	"holdfast/internal/node"
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
		if l.server.cfg.Replica != nil {
			return l.server.reserve.admit(nc), nil
		}
		l.server.logFull(nc.RemoteAddr().String())
		// A new socket's buffer takes this without blocking; the deadline is for the
		// day when that is not so.
		nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		nc.Write([]byte(refusal))
		nc.Close()
	}
}

func (s *Server) logFull(remote string) {
	s.node.Note(node.Notice{Type: node.NoticeLimit, From: remote, Text: "limit-connections"})
	if skipped, ok := s.admitLog.allow(time.Now()); ok {
		s.log.Warn("connection refused: HOLDFAST_MAX_CONNECTIONS or HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS is reached",
			"event", "limit", "remote", remote, "skipped", skipped)
	}
}

// admitted is a connection that has a place, with Admit or in the reserve.
type admitted struct {
	net.Conn
	onTrial bool // in the reserve: good for becoming a link only

	once sync.Once
	gone func()
}

// Close closes the connection and gives back its place, once.
func (c *admitted) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// leave gives back its place, once.
func (c *admitted) leave() { c.once.Do(c.gone) }

// NetConn returns the socket, for who sets its options.
func (c *admitted) NetConn() net.Conn { return c.Conn }
