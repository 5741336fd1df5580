package locks_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "holdfast/internal/locks"
)

// BenchmarkAcquireRelease takes and releases keys one after the other: of a
// thousand that are free, and among a million that stay held.
func BenchmarkAcquireRelease(b *testing.B) {
	b.Run("keys=1000", func(b *testing.B) { benchmarkPairs(b, DefaultConfig(), 1000, 0) })
	b.Run("ended kept", func(b *testing.B) { benchmarkPairs(b, keeping(), 1000, 0) })
	b.Run("held=1000000", func(b *testing.B) { benchmarkPairs(b, DefaultConfig(), 1_000_000, 1_000_000) })
}

// benchmarkPairs takes and releases n keys in a random order. If they are
// held, it releases first. With the ended set kept, it is full soon.
func benchmarkPairs(b *testing.B, cfg Config, n, held int) {
	c := newCrowd(b, cfg, 2)
	keys, tokens := c.fill(n, time.Hour)
	acquire := Command{Op: OpAcquire, Session: client(1), Lease: time.Hour}
	release := Command{Op: OpRelease, Session: client(1)}
	if held == 0 {
		for i := range keys {
			release.Key, release.Token = keys[i], tokens[i]
			c.once(&release)
		}
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.now += 100
		at := order[i%n]
		acquire.Key, release.Key = keys[at], keys[at]
		if held == 0 {
			release.Token = c.once(&acquire)
			c.once(&release)
		} else {
			release.Token = tokens[at]
			c.once(&release)
			tokens[at] = c.once(&acquire)
		}
	}
}

// BenchmarkHandOff passes one key from one of 100,000 waiters to the next; who
// had it queues again.
func BenchmarkHandOff(b *testing.B) {
	const waiters = 100_000
	c := newCrowd(b, DefaultConfig(), waiters+1)
	acquire := Command{Op: OpAcquire, Key: []byte("jobs"), Wait: time.Hour}
	release := Command{Op: OpRelease, Key: acquire.Key}
	acquire.Session = client(0)
	release.Token = c.once(&acquire)
	for i := range waiters {
		acquire.Session = client(i + 1)
		c.once(&acquire)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.now += 100
		acquire.Session = client(i % (waiters + 1))
		release.Session = acquire.Session
		release.Token = c.once(&release)
		c.once(&acquire)
	}
}

// BenchmarkExpiryStorm lets 100,000 leases end at once, done in pieces of 256.
func BenchmarkExpiryStorm(b *testing.B) {
	const n = 100_000
	c := newCrowd(b, DefaultConfig(), 2)
	for b.Loop() {
		b.StopTimer()
		c.fill(n, time.Second)
		c.now = c.now.Add(time.Second)
		b.StartTimer()
		for c.Next() <= c.now {
			c.fx.Reset()
			c.Advance(c.now, 256, &c.fx)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/expiry")
}

// BenchmarkStepDown ends a reign in which 100,000 wait for one key.
func BenchmarkStepDown(b *testing.B) {
	const waiters = 100_000
	for b.Loop() {
		b.StopTimer()
		c := newCrowd(b, DefaultConfig(), waiters+1)
		for i := range waiters + 1 {
			c.do(Command{Op: OpAcquire, Session: client(i), Key: []byte("jobs"), Ticket: ticket(i + 1)})
		}
		c.fx.Reset()
		b.StartTimer()
		c.StepDown(&c.fx)
	}
}

// BenchmarkCancel withdraws, and queues again, somewhere in a queue of 65,000 of
// one client.
func BenchmarkCancel(b *testing.B) {
	const waiters = 65_000
	c := newCrowd(b, DefaultConfig(), 2)
	acquire := Command{Op: OpAcquire, Session: client(1), Key: []byte("jobs"), Lease: time.Hour}
	for i := range waiters + 1 {
		acquire.Ref = uint64(i)
		c.once(&acquire)
	}
	cancel := Command{Op: OpCancel, Session: client(1)}
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		cancel.Ref = uint64(1 + rng.IntN(waiters))
		acquire.Ref = cancel.Ref
		c.once(&cancel)
		c.once(&acquire)
	}
}

// BenchmarkBytesPerKey reports what a million held keys cost in memory.
func BenchmarkBytesPerKey(b *testing.B) {
	var got float64
	for b.Loop() {
		got = bytesPerKey(b, 1_000_000)
	}
	b.ReportMetric(got, "B/key")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSemaphore takes and gives back a slot of one that thousands hold.
func BenchmarkSemaphore(b *testing.B) {
	for _, slots := range []int{10, 60_000} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			c := newCrowd(b, DefaultConfig(), 2)
			acquire := Command{Op: OpAcquire, Session: client(1), Key: []byte("pool"), Slots: uint16(slots), Lease: time.Hour}
			release := Command{Op: OpRelease, Session: client(1), Key: acquire.Key}
			for range slots - 1 {
				c.once(&acquire)
			}
			b.ReportAllocs()
			for b.Loop() {
				release.Token = c.once(&acquire)
				c.once(&release)
			}
		})
	}
}
