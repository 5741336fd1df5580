package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/node"
	"holdfast/wire"
)

// These tests need real sockets: buffers that fill, resets, half-closes.

// records keeps log lines.
type records struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func newRecords() *records {
	r := new(records)
	r.Handler = slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})
	return r
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(p))
	return len(p), nil
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "")
}

// quiet is a client that reads only when it is told to.
func (f *fixture) quiet() *rawClient {
	f.t.Helper()
	c := newRawClient(f.t, f.dial())
	f.t.Cleanup(func() { c.nc.Close() })
	return c
}

func (c *rawClient) send(t testing.TB, reqs ...wire.Request) {
	for i := range reqs {
		c.out = wire.AppendRequest(c.out, &reqs[i])
	}
	c.flush(t)
}

func reset(nc net.Conn) {
	nc.(*net.TCPConn).SetLinger(0)
	nc.Close()
}

// eachConn calls f for every connection of the server, with its mutex held.
func (f *fixture) eachConn(visit func(c *conn)) {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	for c := range f.srv.conns {
		c.mu.Lock()
		visit(c)
		c.mu.Unlock()
	}
}

func pings(n int) []byte {
	var b []byte
	for range n {
		b = wire.AppendRequest(b, &wire.Request{Op: wire.OpPing, ID: 9})
	}
	return b
}

// fill sends requests of a client that does not read until its answers fill the
// sockets, which take a third of them here, and the rest stands in its output.
// It returns when the server has handled them all: the last one releases a key
// that the other client waits for.
func (f *fixture) fill(deaf, other *rawClient) {
	f.t.Helper()
	other.send(f.t, acquireOf(1001, "handled"), acquireOf(1002, "handled"))
	token := other.read(f.t).Token
	if _, err := deaf.nc.Write(pings(50_000)); err != nil {
		f.t.Fatal(err)
	}
	deaf.send(f.t, releaseOf(1, "handled", token))
	if r := other.read(f.t); r.ID != 1002 || r.Status != wire.StatusGranted {
		f.t.Fatal(r)
	}
	var most int
	f.eachConn(func(c *conn) { most = max(most, c.out.counted) })
	if most < 200_000 {
		f.t.Fatalf("the output holds %d bytes: the sockets took too many", most)
	}
}

// A client that never reads is cut once its answers fill its output, which
// stays within its bound; another client does not notice (C-70).
func TestNeverReadingIsCut(t *testing.T) {
	logged := newRecords()
	const limit = 256 << 10
	f := start(t, tight, func(_ *node.Config, c *Config) {
		c.OutputLimit = limit
		c.Logger = slog.New(logged)
	})
	deaf, other := f.quiet(), f.quiet()
	go func() {
		for {
			if _, err := deaf.nc.Write(pings(4000)); err != nil {
				return
			}
		}
	}()
	largest := 0
	for i := uint32(1); !strings.Contains(logged.String(), "answers not read"); i++ {
		other.send(t, tryOf(i, "k"))
		r := other.read(t)
		other.send(t, releaseOf(i, "k", r.Token))
		if r := other.read(t); r.Status != wire.StatusReleased {
			t.Fatalf("the other client was answered %v", r)
		}
		f.eachConn(func(c *conn) { largest = max(largest, c.out.size) })
	}
	if most := limit + 2*bufferBytes; largest > most {
		t.Errorf("the output held %d bytes, above %d", largest, most)
	}
}

// Grants that stand in the output of a client that is cut, or is gone, are
// withdrawn: the key is free at once.
func TestUndeliveredGrantIsWithdrawn(t *testing.T) {
	for _, end := range []string{"cut", "reset", "half-close"} {
		t.Run(end, func(t *testing.T) {
			f := start(t, tight, func(n *node.Config, c *Config) {
				n.Table.ReattachGrace = time.Hour
				c.FlushTimeout = 10 * time.Millisecond
			})
			deaf, other := f.quiet(), f.quiet()
			// The deaf client waits for a key while its socket is filled with answers that it does not read.
			other.send(t, acquireOf(1, "k"))
			token := other.read(t).Token
			forLong := acquireOf(1, "k")
			forLong.LeaseMS = 3_600_000
			forLong.Flags = wire.FlagBound
			deaf.send(t, forLong)
			f.fill(deaf, other)
			patient := acquireOf(3, "k")
			patient.WaitMS = 20_000 // a grant that is not withdrawn would stand longer
			other.send(t, releaseOf(2, "k", token), patient, wire.Request{Op: wire.OpPing, ID: 4})
			if r := other.read(t); r.Status != wire.StatusReleased {
				t.Fatal(r)
			}
			if r := other.read(t); r.Op != wire.OpPing {
				t.Fatalf("the deaf client's grant was not made: %v", r)
			}
			switch end {
			case "cut":
				go func() {
					for {
						if _, err := deaf.nc.Write(pings(100)); err != nil {
							return
						}
					}
				}()
			case "reset":
				reset(deaf.nc)
			case "half-close":
				deaf.nc.(*net.TCPConn).CloseWrite()
			}
			if r := other.read(t); r.Status != wire.StatusGranted || r.Token <= token {
				t.Errorf("after the %s: %v", end, r)
			}
		})
	}
}

// A thousand waiters whose sockets are reset are in nobody's way (C-07).
func TestResetWaitersLeave(t *testing.T) {
	f := start(t, loopback)
	holder := f.greet("holder")
	holder.send(acquireOf(1, "k"))
	token := holder.next().Token
	for range 50 {
		c := f.quiet()
		for id := range uint32(20) {
			c.send(t, acquireOf(id+1, "k"))
		}
		reset(c.nc)
	}
	last := f.greet("last")
	last.send(acquireOf(1, "k"))
	last.sync()
	holder.send(releaseOf(2, "k", token))
	if r := last.next(); r.Status != wire.StatusGranted {
		t.Errorf("got %v", r)
	}
}

// A waiter that is reset in the moment of its grant keeps nobody waiting for
// longer than its lease, and for no time at all if the grant was not written
// (C-18).
func TestResetRacesGrant(t *testing.T) {
	f := start(t, loopback)
	holder, next := f.quiet(), f.quiet()
	for round := range uint32(100) {
		key := fmt.Sprint("k", round)
		holder.send(t, acquireOf(1, key))
		token := holder.read(t).Token
		c := f.quiet()
		lost := acquireOf(1, key)
		lost.LeaseMS = 20
		c.send(t, lost, wire.Request{Op: wire.OpPing, ID: 2})
		c.read(t)
		next.send(t, acquireOf(1, key))
		done := make(chan struct{})
		go func() {
			defer close(done)
			reset(c.nc)
		}()
		holder.send(t, releaseOf(2, key, token))
		if r := holder.read(t); r.Status != wire.StatusReleased {
			t.Fatal(r)
		}
		r := next.read(t)
		if r.Status != wire.StatusGranted {
			t.Fatalf("round %d: %v", round, r)
		}
		next.send(t, releaseOf(2, key, r.Token))
		next.read(t)
		<-done
	}
}

// A half-close is the end of the connection: answers already made arrive, what
// waits is gone.
func TestHalfClose(t *testing.T) {
	f := start(t, loopback)
	a, b := f.greet("a"), f.greet("b")
	b.send(acquireOf(1, "k"))
	token := b.next().Token
	var burst []wire.Request
	for i := range uint32(2000) {
		burst = append(burst, wire.Request{Op: wire.OpPing, ID: i + 1})
	}
	a.send(acquireOf(1, "k"))
	a.send(burst...)
	a.nc.(*net.TCPConn).CloseWrite()
	replies, _ := a.ended()
	if len(replies) != len(burst) {
		t.Errorf("%d of %d answers arrived", len(replies), len(burst))
	}
	b.send(releaseOf(2, "k", token), tryOf(3, "k"))
	if got := outcomes([]wire.Reply{b.next(), b.next()}); got != "release released, acquire granted" {
		t.Errorf("the waiter was still there: %s", got)
	}
}

// Frames are answered once, however they are cut into packets; one that is cut
// by the end of input is not.
func TestOneBytePerPacket(t *testing.T) {
	f := start(t, loopback)
	c := f.connect("c")
	hello := wire.Request{Op: wire.OpHello, Version: 1, Owner: []byte("drip")}
	stream := wire.AppendRequest(nil, &hello)
	for _, r := range []wire.Request{acquireOf(1, "k"), {Op: wire.OpPing, ID: 2}, tryOf(3, "k")} {
		stream = wire.AppendRequest(stream, &r)
	}
	cut := acquireOf(4, "never")
	stream = append(stream, wire.AppendRequest(nil, &cut)[:30]...)
	for i := range stream {
		c.sendBytes(stream[i : i+1])
	}
	c.nc.(*net.TCPConn).CloseWrite()
	replies, raw := c.ended()
	if got := outcomes(replies); got != "hello welcome, acquire granted, ping pong, acquire not granted" || raw != "" {
		t.Errorf("got %s %q", got, raw)
	}
}

// The answer to a broken frame arrives although the client goes on sending: no
// reset destroys it. Sending for ever does not keep the connection.
func TestLastWordArrives(t *testing.T) {
	f := start(t, loopback, func(_ *node.Config, c *Config) { c.DrainTimeout = time.Hour })
	c := f.greet("c")
	bad := append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 32<<10)...)
	c.sendBytes(bad)
	replies, _ := c.ended() // as far as the server writes; it still reads
	for {
		if _, err := c.nc.Write(bad); err != nil {
			break
		}
	}
	if len(replies) != 1 || replies[0].Code != wire.CodeMalformed {
		t.Errorf("got %v", replies)
	}
}

// A connection that waits holds no buffer; one with the beginning of a frame
// holds that (C-71).
func TestWaitingHoldsNoBuffer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := newConn(New(DefaultConfig(newNode(t))), nc, func() {})
	waits := func() (waits bool) {
		c.raw.Control(func(fd uintptr) { waits = !c.in.tryRead(fd) })
		return waits
	}
	if !waits() || c.in.buf != nil || c.in.begun != nil {
		t.Errorf("idle: holds %p and %d bytes", c.in.buf, len(c.in.begun))
	}
	frame := acquireOf(1, "k")
	bytes := wire.AppendRequest(nil, &frame)
	for _, part := range [][]byte{bytes[:20], bytes[20:30], bytes[30:]} {
		if _, err := peer.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := c.in.more(); err != nil {
			t.Fatal(err)
		}
		have := len(c.in.bytes())
		if !waits() || c.in.buf != nil || len(c.in.begun) != have || cap(c.in.begun) > keptBegun {
			t.Errorf("with %d bytes of a frame: holds %p and %d of %d bytes", have, c.in.buf, len(c.in.begun), cap(c.in.begun))
		}
		c.in.unpark()
	}
	if string(c.in.bytes()) != string(bytes) {
		t.Errorf("put together: %x, sent: %x", c.in.bytes(), bytes)
	}
}

// A graceful stop ends although a client does not read, and tells those who do.
func TestShutdownIsBounded(t *testing.T) {
	f := start(t, tight, func(_ *node.Config, c *Config) {
		c.FlushTimeout = 20 * time.Millisecond
		c.DrainTimeout = 20 * time.Millisecond
		c.OutputLimit = 1 << 30
	})
	deaf, other, told := f.quiet(), f.quiet(), f.greet("told")
	f.fill(deaf, other)
	if err := f.srv.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if replies, _ := told.ended(); outcomes(replies) != "moved node moved" {
		t.Errorf("a client that reads was told %s", outcomes(replies))
	}
	if _, err := net.Dial("tcp", f.ln.Addr().String()); err == nil {
		t.Error("the server still accepts")
	}
}

// A stop that takes too long is cut short, whatever a connection waits for: for
// its client to close, or to read first.
func TestShutdownTimeout(t *testing.T) {
	f := start(t, tight, func(_ *node.Config, c *Config) {
		c.FlushTimeout = time.Hour
		c.DrainTimeout = time.Hour
	})
	stays, deaf := f.quiet(), f.quiet()
	f.fill(deaf, stays)
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, errors.New("too slow"))
	defer cancel()
	if err := f.srv.Shutdown(ctx); err == nil || !strings.HasSuffix(err.Error(), "too slow") {
		t.Errorf("Shutdown: %v", err)
	}
}

// HTTP clients understand what they are told.
func TestHTTPClientIsTold(t *testing.T) {
	f := start(t, loopback, func(_ *node.Config, c *Config) { c.HTTPHint = "http://127.0.0.1:7621" })
	nc := f.dial()
	defer nc.Close()
	fmt.Fprintf(nc, "POST /v1/acquire?key=job HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n%s", strings.Repeat("x", 30_000))
	answer, err := io.ReadAll(nc)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 Bad Request\r\n\r\nThis port") || !strings.HasSuffix(string(answer), "http://127.0.0.1:7621.\n") {
		t.Errorf("%q %v", answer, err)
	}
}
