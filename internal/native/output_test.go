package native

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/node"
	"holdfast/wire"
)

// deaf is a client that reads nothing until the function it returns is called.
// With pipes the server's writes wait for that.
func (f *fixture) deaf(name string) (c *client, listen func()) {
	c = &client{t: f.t, nc: f.dial(), name: name, changed: make(chan struct{})}
	c.send(wire.Request{Op: wire.OpHello, Version: wire.Version, Owner: []byte(name)})
	f.t.Cleanup(c.close)
	return c, func() { c.wg.Go(c.readAll) }
}

func small(n *node.Config, c *Config) {
	n.Table.MaxPending = 500
	c.MaxPending = 500
	c.OutputLimit = 2000
}

// Answers that fall due together do not count towards the output limit,
// however many there are.
func TestMassExpiryIsNotCut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory, small)
		holder := f.greet("holder")
		holder.send(acquireOf(1, "k"))
		c, listen := f.deaf("deaf")
		for id := range uint32(500) {
			r := acquireOf(id+1, "k")
			r.WaitMS = 1000
			c.send(r)
		}
		time.Sleep(2 * time.Second)
		c.send(wire.Request{Op: wire.OpPing, ID: 1}) // whereupon the server looks at the output
		synctest.Wait()
		listen()
		synctest.Wait()
		replies := c.take()
		if len(replies) != 502 {
			t.Fatalf("%d replies", len(replies))
		}
		for i, r := range replies[1:501] {
			if r.Status != wire.StatusNotGranted || r.ID != uint32(i+1) {
				t.Fatalf("reply %d: %v", i, r)
			}
		}
		c.send(wire.Request{Op: wire.OpPing, ID: 1})
		synctest.Wait()
		if got := outcomes(c.take()); got != "ping pong" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// But they count as pending until they are written, so that a client which only
// ever waits and never reads comes to its limits too.
func TestUnreadTimeoutsCountAsPending(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		logged := newRecords()
		f := start(t, inMemory, small, func(_ *node.Config, c *Config) { c.Logger = slog.New(logged) })
		holder := f.greet("holder")
		hold := acquireOf(1, "k")
		hold.LeaseMS = 3_600_000
		holder.send(hold)
		c, _ := f.deaf("deaf")
		largest := 0
		for i := range uint32(10_000) {
			r := acquireOf(i+1, "k")
			r.WaitMS = 1
			if _, err := c.nc.Write(wire.AppendRequest(nil, &r)); err != nil {
				break
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			f.eachConn(func(c *conn) { largest = max(largest, c.out.size) })
		}
		synctest.Wait()
		if !strings.Contains(logged.String(), "answers not read") {
			t.Error("the client was not cut")
		}
		if largest > 500*20+3*2000 {
			t.Errorf("the output held %d bytes", largest)
		}
	})
}

// Advice is dropped where it would fill the output; the connection stays.
func TestAdviceIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory, small)
		c, listen := f.deaf("deaf")
		const grants = 60 // their answers are 1,920 bytes, and the lost pushes more than that again
		for i := range uint32(grants) {
			r := acquireOf(i+1, fmt.Sprint("key", i))
			r.LeaseMS = 1000
			c.send(r)
		}
		time.Sleep(2 * time.Second)
		listen()
		synctest.Wait()
		replies := c.take()
		lost := 0
		for _, r := range replies {
			if r.Op == wire.OpLost {
				lost++
			}
		}
		if len(replies)-lost != grants+1 || lost >= grants {
			t.Errorf("%d replies and %d pushes", len(replies)-lost, lost)
		}
		c.send(wire.Request{Op: wire.OpPing, ID: 1})
		synctest.Wait()
		if got := outcomes(c.take()); got != "ping pong" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// A slow client delays nobody, not even one whose release makes its answers.
func TestSlowClientDelaysNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory)
		quick := f.greet("quick")
		slow, listen := f.deaf("slow")
		began := time.Now()
		for range 100 {
			quick.send(acquireOf(1, "k"))
			token := quick.next().Token
			waiting := acquireOf(1, "k")
			waiting.LeaseMS = 1
			slow.send(waiting)
			quick.send(releaseOf(2, "k", token))
			if r := quick.next(); r.Status != wire.StatusReleased {
				t.Fatal(r)
			}
		}
		if took := time.Since(began); took > 200*time.Millisecond { // the leases that the slow client lets run out
			t.Errorf("took %v", took)
		}
		listen()
		synctest.Wait()
		if n := strings.Count(outcomes(slow.take()), "granted"); n != 100 {
			t.Errorf("the slow client read %d grants", n)
		}
	})
}

// Refusals behind an acquire that waits take no room, however many they are,
// and come out in order and in full.
func TestRefusalsInOrderedMode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory, small)
		holder, c := f.greet("holder"), f.greet("c")
		holder.send(acquireOf(1, "k"))
		token := holder.next().Token
		const sent = 3000
		for range sent {
			r := acquireOf(0, "k")
			r.WaitMS = 60_000
			c.send(r)
		}
		synctest.Wait()
		if replies := c.take(); len(replies) != 0 {
			t.Fatalf("answered early: %s", outcomes(replies))
		}
		f.eachConn(func(c *conn) {
			if p := c.pending; p != nil && (p.queued != 500 || len(p.order.answers) != 1) {
				t.Errorf("%d queued, %d answers held", p.queued, len(p.order.answers))
			}
		})
		holder.send(releaseOf(2, "k", token))
		time.Sleep(time.Minute)
		synctest.Wait()
		replies := c.take()
		if len(replies) == 0 {
			t.Fatal("no replies")
		}
		var granted, timedOut, refused int
		for i, r := range replies {
			switch {
			case r.Status == wire.StatusGranted:
				granted++
			case r.Status == wire.StatusNotGranted && refused == 0:
				timedOut++
			case r.Code == wire.CodeLimit:
				refused++
			case r.Op != wire.OpLost:
				t.Fatalf("reply %d: %v", i, r)
			}
		}
		if granted+timedOut != 500 || refused != sent-500 {
			t.Errorf("%d granted, %d timed out, %d refused", granted, timedOut, refused)
		}
	})
}

// The same goes for errors that the connection finds by itself.
func TestErrorsInOrderedMode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := start(t, inMemory, small)
		holder, c := f.greet("holder"), f.greet("c")
		holder.send(acquireOf(1, "k"))
		token := holder.next().Token
		c.send(acquireOf(0, "k"))
		bad := acquireOf(0, "k")
		bad.Flags = 1 << 7
		const sent = 2000
		for range sent {
			c.send(bad)
		}
		synctest.Wait()
		f.eachConn(func(c *conn) {
			if p := c.pending; p != nil && (p.queued+p.order.held != 500 || len(p.order.answers) != 500) {
				t.Errorf("%d queued, %d held, %d answers", p.queued, p.order.held, len(p.order.answers))
			}
		})
		holder.send(releaseOf(2, "k", token))
		synctest.Wait()
		codes := map[wire.Code]int{}
		replies := c.take()
		for _, r := range replies {
			codes[r.Code]++
		}
		if codes[0] != 1 || codes[wire.CodeBadArgument] != 499 || codes[wire.CodeLimit] != sent-499 || replies[0].Code != 0 {
			t.Errorf("answers by code: %v", codes)
		}
	})
}

// However far a write came, the grants that are given back are those whose
// frame was not wholly written.
func TestUnsentGrants(t *testing.T) {
	var frames []int // where each ends
	build := func() *output {
		o := new(output)
		frames = frames[:0]
		for i := range uint64(5) {
			o.add(&wire.Reply{Op: wire.OpAcquire, Status: wire.StatusGranted, Key: []byte("k"), Token: i}, counts)
			frames = append(frames, o.size)
			o.add(&wire.Reply{Op: wire.OpLost, Key: []byte("k"), Token: 99}, nothing)
		}
		return o
	}
	for written := range build().size {
		o := build()
		o.begin()
		o.wrote(written)
		var want, got []uint64
		for i, end := range frames {
			if end > written {
				want = append(want, uint64(i))
			}
		}
		o.unsentGrants(func(_ []byte, token uint64) { got = append(got, token) })
		if !slices.Equal(got, want) {
			t.Errorf("with %d bytes written: %v, want %v", written, got, want)
		}
		o.drop()
		if o.head != nil || o.tail != nil || o.size != 0 || o.counted != 0 {
			t.Fatalf("after drop: %+v", o)
		}
	}
}

// Frames never span buffers, and the sums come out even however the writes go.
func TestOutputBuffers(t *testing.T) {
	o := new(output)
	long := bytes.Repeat([]byte("x"), wire.MaxKeyBytes)
	for i := range 100 {
		o.add(&wire.Reply{Op: wire.OpAcquire, Status: wire.StatusNotGranted, ID: uint32(i), Key: long}, weight(i%3))
	}
	if o.size != 100*(wire.HeaderBytes+len(long)) || o.late != 33 {
		t.Fatalf("%d bytes, %d late", o.size, o.late)
	}
	var stream []byte
	for o.head != nil {
		b := o.begin()
		n := min(b.writing, 1000)
		stream = append(stream, b.b[b.start:][:n]...)
		o.wrote(n)
	}
	if o.size != 0 || o.counted != 0 || o.late != 0 || o.tail != nil {
		t.Errorf("left: %+v", o)
	}
	for i := range 100 {
		var r wire.Reply
		n, err := r.Decode(stream)
		if err != nil || n == 0 || r.ID != uint32(i) {
			t.Fatalf("frame %d: %v %v", i, r, err)
		}
		stream = stream[n:]
	}
}
