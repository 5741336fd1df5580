package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcquireRelease(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		l := b.acquire("jobs", WithLease(10*time.Second))
		if l.Key() != "jobs" || l.Token() == 0 || l.Token() != b.table().Holder("jobs") || l.Err() != nil {
			b.Errorf("key %q, token %d, error %v", l.Key(), l.Token(), l.Err())
		}
		b.release(l)
		b.is(l.Err(), ErrReleased)
		b.is(l.Release(b.Context()), ErrReleased)
		b.free("jobs")
	})
}

func TestAcquireWaits(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		first := b.acquire("jobs")
		second := b.start(context.Background(), "jobs")
		time.Sleep(time.Minute / 4)
		b.release(first)
		synctest.Wait()
		got := <-second
		if got.err != nil || got.l.Token() <= first.Token() {
			b.Fatalf("token %d after %d, error %v", got.l.Token(), first.Token(), got.err)
		}
		b.release(got.l)
		b.free("jobs")
	})
}
