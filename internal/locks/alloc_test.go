package locks_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	. "holdfast/internal/locks"
)

// What a server does all the time allocates nothing, events included.
func TestAllocations(t *testing.T) {
	cases := []struct {
		name  string
		cycle func(c *crowd) func()
	}{
		{"acquire and release", plainCycle(Command{Op: OpAcquire, Session: client(1), Key: []byte("jobs")})},
		{"with a long key", plainCycle(Command{Op: OpAcquire, Session: client(1), Key: make([]byte, 500)})},
		{"with a ticket", plainCycle(Command{Op: OpAcquire, Session: client(1), Key: []byte("jobs"), Ticket: ticket(1)})},
		{"bound", plainCycle(Command{Op: OpAcquire, Session: client(1), Key: []byte("jobs"), Flags: Bound})},
		{"semaphore", plainCycle(Command{Op: OpAcquire, Session: client(1), Key: []byte("jobs"), Slots: 9, Ticket: ticket(1)})},
		{"queue and hand over", handOver(Command{Op: OpAcquire, Key: []byte("jobs"), Wait: time.Minute})},
		{"queue and hand over with a ticket", handOver(Command{Op: OpAcquire, Key: []byte("jobs"), Ticket: ticket(1)})},
		{"queue and cancel", queueAndCancel},
		{"extend", extendCycle},
		{"expiry", expiryCycle},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			c := newCrowd(t, keeping(), 3)
			c.fx.Record = true
			cycle := test.cycle(c)
			for range 100 {
				cycle()
			}
			if n := testing.AllocsPerRun(1000, cycle); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// once runs a command in place and returns the token of its last reply.
func (c *crowd) once(cmd *Command) Token {
	c.fx.Reset()
	c.Do(c.now, cmd, &c.fx)
	return c.fx.Replies[len(c.fx.Replies)-1].Token
}

func plainCycle(acquire Command) func(c *crowd) func() {
	return func(c *crowd) func() {
		release := Command{Op: OpRelease, Session: acquire.Session, Key: acquire.Key}
		return func() {
			release.Token = c.once(&acquire)
			c.once(&release)
		}
	}
}

// handOver lets two clients pass a key to each other.
func handOver(acquire Command) func(c *crowd) func() {
	return func(c *crowd) func() {
		acquire.Session = client(1)
		release := Command{Op: OpRelease, Key: acquire.Key, Token: c.once(&acquire)}
		holder := 1
		return func() {
			acquire.Session, release.Session = client(3-holder), client(holder)
			acquire.Ticket[15]++ // a ticket that holds would be a repeat
			c.once(&acquire)
			release.Token = c.once(&release)
			holder = 3 - holder
		}
	}
}

func queueAndCancel(c *crowd) func() {
	k := []byte("jobs")
	c.want(Granted, Command{Op: OpAcquire, Session: client(1), Key: k, Lease: time.Hour})
	acquire := Command{Op: OpAcquire, Session: client(2), Key: k, Ref: 7, Wait: time.Minute}
	cancel := Command{Op: OpCancel, Session: client(2), Ref: 7}
	return func() {
		c.once(&acquire)
		c.once(&cancel)
	}
}

func extendCycle(c *crowd) func() {
	k := []byte("jobs")
	extend := Command{Op: OpExtend, Session: client(1), Key: k}
	extend.Token = c.want(Granted, Command{Op: OpAcquire, Session: client(1), Key: k}).Token
	return func() {
		c.now++
		c.once(&extend)
	}
}

func expiryCycle(c *crowd) func() {
	acquire := Command{Op: OpAcquire, Session: client(1), Key: []byte("jobs"), Lease: time.Second}
	return func() {
		c.once(&acquire)
		c.now = c.Next()
		c.fx.Reset()
		c.Advance(c.now, 0, &c.fx)
	}
}

// fill lets client 1 hold n keys of 16 bytes.
func (c *crowd) fill(n int, lease time.Duration) (keys [][]byte, tokens []Token) {
	buf := make([]byte, 0, 16*n)
	acquire := Command{Op: OpAcquire, Session: client(1), Lease: lease}
	for i := range n {
		buf = fmt.Appendf(buf, "key-%012d", i)
		acquire.Key = buf[16*i : 16*i+16 : 16*i+16]
		keys = append(keys, acquire.Key)
		tokens = append(tokens, c.once(&acquire))
	}
	return keys, tokens
}

// bytesPerKey measures what a held key of 16 bytes costs.
func bytesPerKey(t testing.TB, n int) float64 {
	c := newCrowd(t, DefaultConfig(), 2)
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	c.fill(n, time.Hour)
	used := heap() - before
	runtime.KeepAlive(c)
	return used / float64(n)
}

// A held key of 16 bytes costs at most 200 bytes.
func TestBytesPerKey(t *testing.T) {
	if got := bytesPerKey(t, 200_000); got > 200 {
		t.Errorf("%.0f bytes", got)
	}
}
