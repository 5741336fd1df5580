package link

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/replica"
)

// told is what an owner was told.
type told chan string

// next waits for what comes next.
func (o told) next(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-o:
		if got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("told nothing, want %q", want)
	}
}

// pair is two nodes on real sockets; only n0 dials.
type pair struct {
	a, b         *Transport
	toldA, toldB told
	onA, onB     atomic.Value // of func(replica.Input) bool: takes an input instead of telling it
	server       *http.Server
	stopA, stopB context.CancelFunc
	ranA, ranB   chan error
	served       chan error
}

func newPair(t testing.TB, secure *tls.Config, trust *tls.Config) *pair {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme := "http://"
	if secure != nil {
		scheme = "https://"
	}
	cfg := Config{
		Peers:   []Peer{{"n0", "http://" + refusedAddr(t)}, {"n1", scheme + ln.Addr().String()}},
		Secrets: func() []string { return []string{secret} }, Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		TLS: func() *tls.Config { return trust },
	}
	p := &pair{toldA: make(told, 100), toldB: make(told, 100), ranA: make(chan error, 1), ranB: make(chan error, 1), served: make(chan error, 1)}
	if p.a, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Rank = 1
	deaf(&cfg)
	if p.b, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	p.server = &http.Server{Handler: p.b, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	if secure != nil {
		ln = tls.NewListener(ln, secure)
	}
	var ctxA, ctxB context.Context
	ctxA, p.stopA = context.WithCancel(context.Background())
	ctxB, p.stopB = context.WithCancel(context.Background())
	go func() { p.ranB <- p.b.Run(ctxB, ownerFunc(func(in replica.Input) { p.tell(&p.onB, p.toldB, in) })) }()
	go func() { p.served <- p.server.Serve(ln) }()
	go func() { p.ranA <- p.a.Run(ctxA, ownerFunc(func(in replica.Input) { p.tell(&p.onA, p.toldA, in) })) }()
	t.Cleanup(func() {
		p.stopA()
		p.stopB()
		p.server.Close()
		<-p.ranA
		<-p.ranB
		<-p.served
	})
	return p
}

// tell hands on what an owner is told; n1 does not dial.
func (p *pair) tell(on *atomic.Value, to told, in replica.Input) {
	if take, ok := on.Load().(func(replica.Input) bool); ok && take(in) {
		return
	}
	if _, ok := in.(replica.DialFailed); ok && to == p.toldB {
		return
	}
	to <- describe(in)
}

type ownerFunc func(replica.Input)

func (f ownerFunc) Step(in replica.Input) { f(in) }

// A process that dies is a reset and then a refused dial: told at once, in this order.
func TestKilledProcess(t *testing.T) {
	p := newPair(t, nil, nil)
	p.toldA.next(t, "up 1 dialled")
	p.toldB.next(t, "up 1 accepted")
	p.server.Close()
	c := p.b.link(1)
	c.raw.(*net.TCPConn).SetLinger(0)
	c.raw.Close()
	p.toldA.next(t, "down 1")
	p.a.Push(replica.Redial{Peer: 1})
	p.toldA.next(t, "dial 1 refused")
	p.toldB.next(t, "down 1")
}

// A megabyte each way, over the kernel's buffers, with control in between.
func TestThroughSockets(t *testing.T) {
	p := newPair(t, nil, nil)
	p.toldA.next(t, "up 1 dialled")
	p.toldB.next(t, "up 1 accepted")
	p.a.Push(bulk(1, chunk(1, 1<<20)))
	p.toldB.next(t, "received 1: 1 with 1048576 bytes")
	p.b.Push(bulk(1, chunk(2, 1<<20)))
	p.toldA.next(t, "received 1: 2 with 1048576 bytes")
	p.b.Push(control(1, lost(3)))
	p.toldA.next(t, "received 1: 3")
	p.b.Push(control(1, lost(4)))
	p.b.Push(replica.CloseLink{Link: 1, Why: "enough"})
	p.toldA.next(t, "received 1: 4")
	p.toldA.next(t, "down 1")
	p.toldA.next(t, "up 2 dialled")
}

// With TLS, the certificate must be the peer's and of a known authority.
func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	t.Run("trusted", func(t *testing.T) {
		p := newPair(t, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}, &tls.Config{RootCAs: pool})
		p.toldA.next(t, "up 1 dialled")
		p.toldB.next(t, "up 1 accepted")
		if _, ok := p.b.link(1).raw.(*net.TCPConn); !ok {
			t.Errorf("the innermost connection is a %T", p.b.link(1).raw)
		}
		p.a.Push(bulk(1, chunk(1, 1<<20)))
		p.toldB.next(t, "received 1: 1 with 1048576 bytes")
		p.a.Push(replica.CloseLink{Link: 1, Why: "enough"})
		p.toldB.next(t, "down 1")
	})
	t.Run("unknown authority", func(t *testing.T) {
		p := newPair(t, &tls.Config{Certificates: []tls.Certificate{cert}}, &tls.Config{RootCAs: x509.NewCertPool()})
		p.toldA.next(t, "dial 1 failed")
	})
	t.Run("other name", func(t *testing.T) {
		p := newPair(t, &tls.Config{Certificates: []tls.Certificate{cert}}, &tls.Config{RootCAs: pool, ServerName: "n9"})
		p.toldA.next(t, "dial 1 failed")
	})
}

// certificate makes one for 127.0.0.1, which is its own authority.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "n1"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
