package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"holdfast/internal/node"
)

// The runtime collects when the heap has grown, and a server whose locks have
// all gone does not grow: it would keep the memory of its busiest hour. So the
// daemon looks now and then whether it has far more than what stands can need.
const (
	memoryPeriod  = 10 * time.Second
	memorySlack   = 24 << 20 // bytes that nobody asks about
	bytesPerClaim = 256      // a lock or a waiter, generously
	bytesPerConn  = 16 << 10
)

// giveMemoryBack returns memory to the system until ctx ends.
func giveMemoryBack(ctx context.Context, n *node.Node) {
	ticker := time.NewTicker(memoryPeriod)
	defer ticker.Stop()
	var m memoryMark
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		st := n.Status()
		need := (st.Stats.Held+st.Stats.Waiters)*bytesPerClaim + st.Sessions*bytesPerConn
		if have := memoryHeld(); m.worthwhile(have, need) {
			debug.FreeOSMemory() // a full collection: milliseconds, as little is left
			m = memoryMark{memoryHeld(), need}
		}
	}
}

// memoryMark is what the last return of memory left, and what it was needed for.
type memoryMark struct{ have, need int }

// worthwhile says whether a return would find something: there is much more
// than is needed, and that has changed since the last one.
func (m memoryMark) worthwhile(have, need int) bool {
	return have > 2*need+memorySlack && (have > m.have+memorySlack || need < m.need/2)
}

// memoryHeld is what the runtime has from the system and has not given back.
func memoryHeld() int {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
