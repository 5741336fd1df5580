package node_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/internal/replica"
)

// BenchmarkDo measures what a batch of pipelined pairs costs a node, of its own
// and of a cluster: there the events are encoded and kept in the log.
func BenchmarkDo(b *testing.B) {
	for _, clustered := range []bool{false, true} {
		name := "alone"
		cfg := node.Config{Name: "n1", Table: locks.DefaultConfig()}
		if clustered {
			name = "logged"
			m := replica.DefaultConfig()
			m.Names = []string{"n1"}
			cfg.Cluster = &node.Cluster{Machine: m}
		}
		b.Run(name, func(b *testing.B) {
			n, err := node.New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			n.Turn()
			var last locks.Token
			tokens := make([]locks.Token, 0, 64)
			s := n.Open(locks.Origin{Owner: "host/bench", Remote: "127.0.0.1:4711", Transport: "native"}, sinkFunc(func(r *locks.Reply) {
				last = r.Token
				tokens = append(tokens, r.Token)
			}))
			defer s.Close()
			keys := make([][]byte, 1024)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "bench/key-%04d", i)
			}
			acquires, releases := make([]locks.Command, 64), make([]locks.Command, 64)
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				tokens = tokens[:0]
				for i := range acquires {
					acquires[i] = locks.Command{Op: locks.OpAcquire, Ref: 1, Key: keys[(at+i)%len(keys)], Lease: time.Minute}
				}
				s.Do(acquires)
				for i := range releases {
					releases[i] = locks.Command{Op: locks.OpRelease, Ref: 1, Key: keys[(at+i)%len(keys)], Token: tokens[i]}
				}
				at += 64
				s.Do(releases)
				n.Turn()
			}
			if last == 0 {
				b.Fatal("nothing was granted")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/pair")
		})
	}
}

// BenchmarkDoWatched is BenchmarkDo for a node of its own whose every grant and
// release is watched, by two hundred who have stopped reading.
func BenchmarkDoWatched(b *testing.B) {
	for _, watchers := range []int{0, 1, 200} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			n, err := node.New(node.Config{Name: "n1", Table: locks.DefaultConfig()})
			if err != nil {
				b.Fatal(err)
			}
			for range watchers {
				sub, err := n.Feed().Subscribe(node.Filter{Traffic: true})
				if err != nil {
					b.Fatal(err)
				}
				defer sub.Close()
			}
			var token locks.Token
			s := n.Open(locks.Origin{}, sinkFunc(func(r *locks.Reply) { token = r.Token }))
			defer s.Close()
			key := []byte("bench/key")
			b.ReportAllocs()
			for b.Loop() {
				s.Do([]locks.Command{{Op: locks.OpAcquire, Ref: 1, Key: key, Lease: time.Minute}})
				s.Do([]locks.Command{{Op: locks.OpRelease, Ref: 1, Key: key, Token: token}})
			}
		})
	}
}
