package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/wire"
)

// party takes and releases locks over one transport, so that a case can be
// played over each and across them.
type party interface {
	try(key string, lease time.Duration) (token uint64, ok bool)
	release(key string, token uint64) (released bool)
}

type nativeParty struct{ *raw }

func (p nativeParty) try(key string, lease time.Duration) (uint64, bool) {
	r := p.ask(try(key, lease))
	return r.Token, r.Status == wire.StatusGranted
}

func (p nativeParty) release(key string, token uint64) bool {
	return p.ask(release(key, token)).Status == wire.StatusReleased
}

type httpParty struct{ *daemon }

func (p httpParty) try(key string, lease time.Duration) (uint64, bool) {
	a := p.post("/v1/acquire", "key", key, "lease", fmt.Sprint(lease.Seconds()), "try", "true")
	return a.Token, a.Code == 200
}

func (p httpParty) release(key string, token uint64) bool {
	return p.post("/v1/release", "key", key, "token", fmt.Sprint(token)).Code == 200
}

// acrossTransports plays a case with x and y on every pair of transports.
func acrossTransports(t *testing.T, play func(t *testing.T, d *daemon, x, y party)) {
	d := start(t)
	make := map[string]func(t *testing.T) party{
		"native": func(t *testing.T) party { return nativeParty{dial(t, d.native)} },
		"http":   func(t *testing.T) party { return httpParty{d} },
	}
	for _, a := range []string{"native", "http"} {
		for _, b := range []string{"native", "http"} {
			t.Run(a+"-"+b, func(t *testing.T) { play(t, d, make[a](t), make[b](t)) })
		}
	}
}

// C-01, C-02, C-03: a late, a repeated and an invented release never touch the
// lock of whoever holds it now.
func TestOnlyTheHoldersTokenReleases(t *testing.T) {
	acrossTransports(t, func(t *testing.T, d *daemon, x, y party) {
		key := t.Name()
		t1, ok := x.try(key, 100*time.Millisecond)
		if !ok {
			t.Fatal("a free key was refused")
		}
		var t2 uint64
		d.await("the lease to end", func() bool { t2, ok = y.try(key, time.Minute); return ok })
		if t2 <= t1 {
			t.Errorf("token %d after %d", t2, t1)
		}
		for _, wrong := range []uint64{t1, t2 + 1, t2 + 8, t2 - 8, 1, 1<<63 + 7} {
			if x.release(key, wrong) {
				t.Errorf("release with %d was accepted, %d holds", wrong, t2)
			}
		}
		if _, ok := x.try(key, time.Minute); ok {
			t.Error("the key was given away while it was held")
		}
		if !y.release(key, t2) {
			t.Error("the holder could not release")
		}
		if y.release(key, t2) {
			t.Error("the same token released twice")
		}
	})
}

// C-10, C-12: keys are bytes. What looks alike is not the same key, and the
// same bytes are the same key on every transport.
func TestKeysAreTheSameBytesEverywhere(t *testing.T) {
	keys := []string{
		"job", "job/", "job/1", "job%2F1", "JOB", "job ", " job", "job\u2028", "caf\u00e9", "cafe\u0301", "\U0001F512",
		"a+b", "a b", "a&b=c", "'\";--", "<script>", strings.Repeat("k", 1024), strings.Repeat("\u00e9", 512),
	}
	acrossTransports(t, func(t *testing.T, d *daemon, x, y party) {
		tokens := map[string]uint64{}
		for _, key := range keys {
			token, ok := x.try(key, time.Minute)
			if !ok {
				t.Fatalf("key %q was refused while only others were held", key)
			}
			tokens[key] = token
		}
		for _, key := range keys {
			if _, ok := y.try(key, time.Minute); ok {
				t.Errorf("key %q was given twice", key)
			}
			if a := d.get("/v1/lock", "key", key); a.Key != key || len(a.Holders) != 1 || a.Holders[0].Token != tokens[key] {
				t.Errorf("key %q is shown as %s", key, a.Body)
			}
		}
		for _, key := range keys {
			if !y.release(key, tokens[key]) {
				t.Errorf("key %q was not released", key)
			}
		}
	})
}

// C-11, C-12: the same keys are refused on every transport, by bytes, and what
// was sent leaves no memory behind.
func TestBadKeysAreRefusedEverywhere(t *testing.T) {
	d := start(t)
	for _, key := range []string{
		"", strings.Repeat("k", 1025), strings.Repeat("\u00e9", 512) + "x", "a\x00b", "a\r\nb", "a\tb", "\x7f", "\xff", "a\xc3", "\xed\xa0\x80",
	} {
		if a := d.post("/v1/acquire", "key", key, "try", "1"); a.Code != 400 || !strings.Contains(a.Detail, "key") {
			t.Errorf("HTTP, key %.20q: %d %s", key, a.Code, a.Body)
		}
		c := dial(t, d.native)
		c.write(frameWithKey(key))
		r := c.next()
		if r.Status != wire.StatusError || r.Code != wire.CodeMalformed && r.Code != wire.CodeBadArgument {
			t.Errorf("native, key %.20q: answered %c %d %s", key, r.Status, r.Code, r.Message)
		}
	}
	before := d.residentKB()
	for range 20 {
		c, err := net.Dial("tcp", d.native)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 1<<20)...))
		c.Close()
		r, err := d.http.Post(d.url+"/v1/acquire", "application/json", strings.NewReader(`{"key":"`+strings.Repeat("k", 1<<20)+`"}`))
		if err == nil {
			if r.StatusCode != 413 {
				t.Errorf("a body of a megabyte was answered %d", r.StatusCode)
			}
			r.Body.Close()
		}
	}
	if grown := d.residentKB() - before; grown > 10<<10 {
		t.Errorf("memory grew by %d KB", grown)
	}
	if a := d.get("/v1/node"); a.Keys != 0 {
		t.Errorf("%d keys stand after only bad ones", a.Keys)
	}
}

// frameWithKey is an acquire with a key that the codec would not encode.
func frameWithKey(key string) []byte {
	valid := wire.AppendRequest(nil, &wire.Request{Op: wire.OpAcquire, Flags: wire.FlagTry, ID: 7})
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(valid)-4+len(key)))
	frame = append(frame, valid[4:6]...)
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(key)))
	frame = append(append(frame, valid[8:12]...), key...)
	return append(frame, valid[12:]...)
}

// C-15: the bounds of a lease are exact.
func TestLeaseBounds(t *testing.T) {
	d := start(t)
	if a := d.post("/v1/acquire", "key", "day", "lease", "86400"); a.Code != 200 {
		t.Errorf("the longest lease was refused: %s", a.Body)
	}
	if a := d.get("/v1/lock", "key", "day"); a.Holders[0].Lease < 86300 || a.Holders[0].Lease > 86400 {
		t.Errorf("the longest lease is shown as %v s", a.Holders[0].Lease)
	}
	for _, lease := range []string{
		"86400.001", "2147483648", "4294967296", "9007199254740992", "9223372036854775807", "18446744073709551615",
		"18446744073709551616", "1e308", "-1", "NaN", "Infinity", "null", "true", "{}",
	} {
		if a := d.post("/v1/acquire", "key", "k"+lease, "lease", lease); a.Code != 400 || !strings.Contains(a.Detail, "lease") {
			t.Errorf("lease %s: %d %s", lease, a.Code, a.Body)
		}
	}
	c := dial(t, d.native)
	r := acquire("k", 0, 0)
	for _, ms := range []uint32{86_400_001, 1 << 31, 1<<32 - 1} {
		r.LeaseMS = ms
		if got := c.ask(r); got.Code != wire.CodeBadArgument {
			t.Errorf("lease %d ms: %c %d %s", ms, got.Status, got.Code, got.Message)
		}
	}
	if a := d.get("/v1/node"); a.Keys != 1 {
		t.Errorf("%d keys stand, want the one", a.Keys)
	}
}

// A client that vanishes while it waits never receives a key: the next in line
// does, at once.
func TestVanishedWaitersGetNothing(t *testing.T) {
	d := start(t)
	vanish := map[string]func(t *testing.T, key string) (leave func()){
		"fin": func(t *testing.T, key string) func() {
			c := dial(t, d.native)
			c.send(acquire(key, time.Hour, 0))
			return func() { c.conn.Close() }
		},
		"rst": func(t *testing.T, key string) func() {
			c := dial(t, d.native)
			c.send(acquire(key, time.Hour, 0))
			return c.reset
		},
		"half-close": func(t *testing.T, key string) func() {
			c := dial(t, d.native)
			c.send(acquire(key, time.Hour, 0))
			return func() { c.conn.(*net.TCPConn).CloseWrite() }
		},
		"http": func(t *testing.T, key string) func() {
			ctx, abort := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, "POST", d.url+"/v1/acquire?key="+key+"&lease=3600&wait=40", nil)
			var wg sync.WaitGroup
			wg.Go(func() {
				if r, err := d.http.Do(req); err == nil {
					r.Body.Close()
				}
			})
			return func() { abort(); wg.Wait() }
		},
		"http-poll": func(t *testing.T, key string) func() { // its ticket was never told, so it needs no grace
			ctx, abort := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, "POST", d.url+"/v1/acquire?key="+key+"&lease=3600&poll=40", nil)
			var wg sync.WaitGroup
			wg.Go(func() {
				if r, err := d.http.Do(req); err == nil {
					r.Body.Close()
				}
			})
			return func() { abort(); wg.Wait() }
		},
	}
	for name, begin := range vanish {
		t.Run(name, func(t *testing.T) {
			x, z := dial(t, d.native), dial(t, d.native)
			token := x.grant(name, time.Hour)
			leave := begin(t, name)
			d.waiters(name, 1)
			z.send(acquire(name, time.Hour, 0))
			d.waiters(name, 2)
			leave()
			d.waiters(name, 1)
			x.ask(release(name, token))
			if r := z.next(); r.Status != wire.StatusGranted {
				t.Errorf("the next in line was answered %c", r.Status)
			}
		})
	}
}

// C-07: a thousand waiters that vanish together do not keep the key from the
// one behind them.
func TestAThousandVanishedWaiters(t *testing.T) {
	d := start(t)
	x, z := dial(t, d.native), dial(t, d.native)
	token := x.grant("k", time.Hour)
	var gone []*raw
	for range 1000 {
		c := dial(t, d.native)
		c.send(acquire("k", time.Hour, 0))
		gone = append(gone, c)
	}
	d.waiters("k", 1000)
	z.send(acquire("k", time.Hour, 0))
	d.waiters("k", 1001)
	for _, c := range gone {
		c.reset()
	}
	x.ask(release("k", token))
	if r := z.next(); r.Status != wire.StatusGranted {
		t.Errorf("the one behind them was answered %c", r.Status)
	}
}

// C-18: whoever closes in the very moment of its grant does not hold the key
// up. Where the grant had been written to its socket, nobody can know that it
// was not read, and its lease decides.
func TestWaiterClosesAsItsTurnComes(t *testing.T) {
	d := start(t)
	x, z := dial(t, d.native), dial(t, d.native)
	for round := range 300 {
		key := fmt.Sprint("k", round)
		token := x.grant(key, time.Hour)
		y := dial(t, d.native)
		y.send(acquire(key, 50*time.Millisecond, 0))
		y.settle()
		z.send(acquire(key, time.Hour, 0))
		z.settle()
		var wg sync.WaitGroup
		wg.Go(func() { x.ask(release(key, token)) })
		for range round % 7 * 200 {
			_ = strconv.Itoa(round) // spread the moment a little
		}
		y.reset()
		if r := z.next(); r.Status != wire.StatusGranted {
			t.Fatalf("round %d: answered %c", round, r.Status)
		}
		wg.Wait()
	}
}

// A ticket keeps its place for the grace, and a grant whose reply was lost is
// answered again.
func TestTicketsSurviveTheirConnection(t *testing.T) {
	d := start(t, "HOLDFAST_REATTACH_GRACE=1s")
	x := dial(t, d.native)
	token := x.grant("k", time.Hour)

	y, z := dial(t, d.native), dial(t, d.native)
	r := acquire("k", time.Hour, 0)
	r.Ticket = ticket()
	y.send(r)
	d.waiters("k", 1)
	z.send(acquire("k", time.Hour, 0))
	d.waiters("k", 2)
	y.reset()
	y = dial(t, d.native)
	r.Flags = wire.FlagRetry
	id := y.send(r)
	y.settle()
	x.ask(release("k", token))
	got := y.next()
	if got.Status != wire.StatusGranted || got.ID != id {
		t.Fatalf("the ticket lost its place: answered %c to %d", got.Status, got.ID)
	}
	y.reset() // as if the reply had been lost
	y = dial(t, d.native)
	if again := y.ask(r); again.Status != wire.StatusGranted || again.Token != got.Token {
		t.Errorf("the repeat was answered %c with token %d, want token %d", again.Status, again.Token, got.Token)
	}
	z.silent(50 * time.Millisecond)
	y.ask(release("k", got.Token))
	zGot := z.next()
	if zGot.Status != wire.StatusGranted || zGot.Token <= got.Token {
		t.Errorf("the next in line got %c %d", zGot.Status, zGot.Token)
	}

	// Whoever does not come back within the grace has left.
	w := dial(t, d.native)
	r.Ticket, r.Flags = ticket(), 0
	w.send(r)
	d.waiters("k", 1)
	w.reset()
	d.waiters("k", 0)
	if a := d.get("/v1/lock", "key", "k"); len(a.Holders) != 1 || a.Holders[0].Token != zGot.Token {
		t.Errorf("after the grace: %s", a.Body)
	}
}

// C-14: the defaults exclude as well as anything explicit.
func TestDefaultsCountExactly(t *testing.T) {
	d := start(t)
	const clients, rounds = 32, 60
	counter := 0 // guarded by the lock "counter" alone
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			c := dial(t, d.native)
			for range rounds {
				r := c.ask(wire.Request{Op: wire.OpAcquire, Key: []byte("counter")})
				counter++
				c.ask(release("counter", r.Token))
			}
		})
	}
	wg.Wait()
	if counter != clients*rounds {
		t.Errorf("counted %d, want %d", counter, clients*rounds)
	}
}

// C-17: the end of a connection takes nobody's locks.
func TestHoldsOutliveTheirConnection(t *testing.T) {
	d := start(t)
	x, y := dial(t, d.native), dial(t, d.native)
	tx, ty := x.grant("x", time.Hour), y.grant("y", time.Hour)
	x.send(acquire("y", time.Hour, 0))
	d.waiters("y", 1)
	x.reset()
	d.waiters("y", 0)
	if r := y.ask(try("x", time.Hour)); r.Status != wire.StatusNotGranted {
		t.Errorf("the lock of a client that is gone was answered %c", r.Status)
	}
	if r := y.ask(release("x", tx)); r.Status != wire.StatusReleased {
		t.Errorf("its token was refused on another connection: %c", r.Status)
	}
	if r := y.ask(release("y", ty)); r.Status != wire.StatusReleased {
		t.Errorf("the other lock was answered %c", r.Status)
	}
}

// C-22, C-23: what has come and gone is gone: counts are exact and memory
// returns.
func TestNothingIsLeftBehind(t *testing.T) {
	d := start(t)
	c := dial(t, d.native)
	before := d.residentKB()
	pump := func(n int, request func(i int) wire.Request, reply func(i int, r wire.Reply)) {
		const depth = 1000
		for at := 0; at < n; at += depth {
			var frames []byte
			for i := at; i < at+depth; i++ {
				r := request(i)
				r.ID = uint32(i + 1)
				frames = wire.AppendRequest(frames, &r)
			}
			c.write(frames)
			for range depth {
				r := c.next()
				reply(int(r.ID-1), r)
			}
		}
	}
	const keys = 200_000
	tokens := make([]uint64, keys)
	name := func(i int) string { return fmt.Sprintf("a key of some length, number %06d", i) }
	pump(keys, func(i int) wire.Request { return acquire(name(i), time.Hour, 0) }, func(i int, r wire.Reply) { tokens[i] = r.Token })
	if a := d.get("/v1/node"); a.Keys != keys {
		t.Errorf("%d keys stand, want %d", a.Keys, keys)
	}
	full := d.residentKB()
	pump(keys, func(i int) wire.Request { return release(name(i), tokens[i]) }, func(i int, r wire.Reply) {
		if r.Status != wire.StatusReleased {
			t.Errorf("release of %s: %c", name(i), r.Status)
		}
	})
	if a := d.get("/v1/node"); a.Keys != 0 {
		t.Errorf("%d keys are left", a.Keys)
	}
	d.await("memory to return", func() bool {
		return d.residentKB() < before+(full-before)/2
	})
	t.Logf("resident: %d KB before, %d with %d keys, %d after", before, full, keys, d.residentKB())
}

// A graceful stop answers everybody and exits with 0, whatever is going on.
func TestStopAnswersEverybody(t *testing.T) {
	d := start(t)
	x := dial(t, d.native)
	x.grant("k", time.Hour)
	var waiting []*raw
	for range 100 {
		c := dial(t, d.native)
		c.send(acquire("k", time.Hour, 0))
		waiting = append(waiting, c)
	}
	polls := make(chan answer, 20)
	for range cap(polls) {
		go func() { polls <- d.post("/v1/acquire", "key", "k", "wait", "40") }()
	}
	d.waiters("k", len(waiting)+cap(polls))
	if code := d.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for range cap(polls) {
		if a := <-polls; a.Code != 503 {
			t.Errorf("a long poll was answered %d %s", a.Code, a.Body)
		}
	}
	for _, c := range waiting {
		if r := c.next(); r.Op != wire.OpAcquire || r.Status != wire.StatusMoved || len(r.Addr) != 0 {
			t.Errorf("a waiter was answered %c %c %q", r.Op, r.Status, r.Addr)
		}
	}
}
