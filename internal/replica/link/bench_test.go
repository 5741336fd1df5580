package link

import (
	"testing"

	"holdfast/internal/replica"
)

// BenchmarkBulk pulls messages of the usual size through a loopback socket,
// from the acceptor to the dialler as from an active to a standby.
func BenchmarkBulk(b *testing.B) {
	msg := chunk(1, pullBytes)
	left, done := b.N, make(chan struct{})
	p := newPair(b, nil, nil)
	<-p.toldA
	<-p.toldB
	p.onA.Store(func(in replica.Input) bool {
		if _, ok := in.(replica.Received); ok {
			if left--; left == 0 {
				close(done)
			}
		}
		return true
	})
	p.onB.Store(func(in replica.Input) bool {
		if _, ok := in.(replica.Pull); ok {
			p.b.Push(bulk(1, msg))
		}
		return true
	})
	b.SetBytes(pullBytes)
	b.ReportAllocs()
	b.ResetTimer()
	p.b.Push(replica.Wake{Link: 1})
	<-done
	b.StopTimer()
}
