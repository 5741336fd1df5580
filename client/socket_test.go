package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/wire"
)

// Tests over real sockets: the inline writer, TLS.

type tlsServer struct {
	*echoServer
	clientConfig *tls.Config
}

func newTLSServer(t *testing.T, host string) *tlsServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	return &tlsServer{newEchoServerOn(t, secure), &tls.Config{RootCAs: roots}}
}

// Many callers over TLS, where all writes go through the writer goroutine.
func TestTLSUnderLoad(t *testing.T) {
	server := newTLSServer(t, "localhost")
	c := dialReal(t, server.addr(), WithTLS(server.clientConfig))
	hammer(t, c, 50, 100)
}

func TestPlainUnderLoad(t *testing.T) { hammer(t, dialReal(t, newEchoServer(t).addr()), 50, 400) }

// hammer has callers acquire and release n times each.
func hammer(t *testing.T, c *Client, callers, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			key := fmt.Sprintf("key %d", i)
			for range n {
				l, err := c.Acquire(ctx, key)
				if err != nil {
					t.Error(err)
					return
				}
				if err := l.Release(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// flood sends many large requests without waiting for an answer, for as long
// as the connection stands.
func flood(c *Client) (calls []*call) {
	n := c.pick()
	for i := range 6000 { // at a kilobyte each more than a socket takes
		cl := c.calls.get(fmt.Sprintf("%01024d", i))
		if err := n.send(cl, &wire.Request{Op: wire.OpAcquire}, c.clock.now()); err != nil {
			break
		}
		calls = append(calls, cl)
	}
	return calls
}

// A server that does not read for a while: the socket fills up, the writer
// takes over, and every request arrives whole and in order.
func TestSlowReader(t *testing.T) {
	read := make(chan struct{})
	begin := sync.OnceFunc(func() { close(read) })
	defer begin() // listenOnce waits for what it serves
	addr := listenOnce(t, func(nc net.Conn) {
		<-read
		(&echoServer{}).serve(nc)
	})
	c := dialReal(t, addr, WithPing(20*time.Second, 20*time.Second))
	calls := flood(c)
	begin()
	for i, cl := range calls {
		if !cl.wait(nil, 0) || cl.res.err != nil || cl.res.token != uint64(i+1) {
			t.Fatalf("call %d: %+v", i, cl.res)
		}
	}
}

// listenOnce serves connections: each is welcomed, and the rest is serve's.
func listenOnce(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				if welcomeOne(nc) == nil {
					serve(nc)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

func welcomeOne(nc net.Conn) error {
	var r wire.Request
	buf := make([]byte, 0, 4096)
	for {
		n, err := nc.Read(buf[len(buf) : len(buf)+1])
		if err != nil {
			return err
		}
		buf = buf[:len(buf)+n]
		if k, err := r.Decode(buf); err != nil {
			return err
		} else if k > 0 {
			_, err := nc.Write(wire.AppendReply(nil, echoReply(&r, 0)))
			return err
		}
	}
}

// A server that never reads again is given up within the ping timeout.
func TestNeverReads(t *testing.T) {
	done := make(chan struct{})
	addr := listenOnce(t, func(net.Conn) { <-done })
	defer close(done)
	c := dialReal(t, addr, WithPing(50*time.Millisecond, 50*time.Millisecond))
	for i, cl := range flood(c) {
		if !cl.wait(nil, 0) || cl.res.err != errDropped {
			t.Fatalf("call %d: %+v", i, cl.res)
		}
	}
}

// The wrong protocol on the port is an error with what was heard.
func TestNotHoldfast(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(nc, "SSH-2.0-OpenSSH_9.2\r\n")
			nc.Close()
		}
	})
	c, err := New([]string{l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.TryAcquire(t.Context(), "jobs")
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()+": hello: decode a reply: ") {
		t.Errorf("error %v", err)
	}
	c.Close()
	l.Close()
	wg.Wait()
}
