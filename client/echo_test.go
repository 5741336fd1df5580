package client

import (
	"net"
	"sync"
	"testing"

	"holdfast/wire"
)

// echoServer grants everything at once, over real sockets and without
// allocating: a floor to measure the client against.
type echoServer struct {
	l  net.Listener
	wg sync.WaitGroup
}

func newEchoServer(tb testing.TB) *echoServer {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return newEchoServerOn(tb, l)
}

func newEchoServerOn(tb testing.TB, l net.Listener) *echoServer {
	s := &echoServer{l: l}
	s.wg.Go(s.accept)
	tb.Cleanup(func() {
		l.Close()
		s.wg.Wait()
	})
	return s
}

func (s *echoServer) addr() string { return s.l.Addr().String() }

func (s *echoServer) accept() {
	for {
		nc, err := s.l.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.serve(nc) })
	}
}

func (s *echoServer) serve(nc net.Conn) {
	defer nc.Close()
	in, out := make([]byte, 1<<16), make([]byte, 0, 1<<16)
	var r wire.Request
	token := uint64(0)
	end := 0
	for {
		n, err := nc.Read(in[end:])
		if err != nil {
			return
		}
		end += n
		used := 0
		out = out[:0]
		for {
			k, err := r.Decode(in[used:end])
			if err != nil {
				return
			}
			if k == 0 {
				break
			}
			used += k
			token++
			out = wire.AppendReply(out, echoReply(&r, token))
		}
		end = copy(in, in[used:end])
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

var echoName = []byte("echo")

func echoReply(r *wire.Request, token uint64) *wire.Reply {
	reply := wire.Reply{Op: r.Op, ID: r.ID, Key: r.Key}
	switch r.Op {
	case wire.OpHello:
		reply.Status, reply.Version, reply.Role, reply.Node = wire.StatusWelcome, wire.Version, wire.RoleActive, echoName
		reply.DefaultLeaseMS = 30_000
	case wire.OpAcquire:
		reply.Status, reply.Token, reply.LeaseMS = wire.StatusGranted, token, 30_000
	case wire.OpRelease:
		reply.Status = wire.StatusReleased
	case wire.OpExtend:
		reply.Status, reply.LeaseMS = wire.StatusExtended, r.LeaseMS
	case wire.OpPing:
		reply.Status = wire.StatusPong
	case wire.OpCancel:
		reply.Status = wire.StatusNone
	}
	return &reply
}
