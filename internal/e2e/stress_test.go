package e2e

import (
	"context"
	"flag"
	"net"
	"sort"
	"sync"
	"testing"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/native"
	"holdfast/internal/node"
	"holdfast/wire"
)

var stressTime = flag.Duration("stress", time.Minute, "how long TestSixtyFourClientsOnEightKeys runs")

// inProcess starts a node with its native port in this process, where the race
// detector watches both sides.
func inProcess(t *testing.T) string {
	t.Helper()
	n, err := node.New(node.Config{Name: "n1", Table: locks.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { n.Run(ctx) })
	srv := native.New(native.DefaultConfig(n))
	wg.Go(func() { srv.Serve(ctx, l) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return l.Addr().String()
}

// turn is one acquire as its client saw it.
type turn struct {
	key    int
	sent   time.Time // before the acquire was sent
	queued time.Time // when the server had surely read it: the ping behind it was answered
	token  uint64
}

// TestSixtyFourClientsOnEightKeys: never two holders, tokens unique and rising
// in the order of grants, and grants in the order of arrival: an acquire that
// the server had read before another one was sent is granted before it.
func TestSixtyFourClientsOnEightKeys(t *testing.T) {
	const clients, keys = 64, 8
	addr := inProcess(t)
	names := [keys]string{"a", "b", "c", "d", "e", "f", "g", "h"}
	var mu sync.Mutex
	var holder [keys]int  // client + 1
	var last [keys]uint64 // token
	var turns [][]turn    // by client
	end := time.Now().Add(*stressTime)

	client := func(me int) []turn {
		c := dial(t, addr)
		defer c.conn.Close()
		var mine []turn
		for i := me; time.Now().Before(end); i++ {
			one := turn{key: (i*7 + me) % keys, sent: time.Now()}
			key := names[one.key]
			id := c.send(acquire(key, time.Minute, 0))
			c.send(wire.Request{Op: wire.OpPing})
			for one.token == 0 || one.queued.IsZero() {
				switch r := c.next(); {
				case r.Op == wire.OpPing:
					one.queued = time.Now()
				case r.ID == id && r.Status == wire.StatusGranted:
					one.token = r.Token
					mu.Lock()
					if holder[one.key] != 0 {
						t.Errorf("key %s: client %d holds it while client %d does", key, me, holder[one.key]-1)
					}
					if r.Token <= last[one.key] {
						t.Errorf("key %s: token %d after %d", key, r.Token, last[one.key])
					}
					holder[one.key], last[one.key] = me+1, r.Token
					mu.Unlock()
				default:
					t.Errorf("client %d: unexpected %c %c %s", me, r.Op, r.Status, r.Message)
					return mine
				}
			}
			mine = append(mine, one)
			mu.Lock()
			holder[one.key] = 0
			mu.Unlock()
			if r := c.ask(release(key, one.token)); r.Status != wire.StatusReleased {
				t.Errorf("client %d: release of %s was answered %c", me, key, r.Status)
			}
		}
		return mine
	}

	turns = make([][]turn, clients)
	var wg sync.WaitGroup
	for me := range clients {
		wg.Go(func() { turns[me] = client(me) })
	}
	wg.Wait()
	checkOrder(t, turns, keys)
}

// checkOrder looks for a pair on one key where the one that was read before the
// other was sent got the higher token.
func checkOrder(t *testing.T, turns [][]turn, keys int) {
	seen := map[uint64]bool{}
	byKey := make([][]turn, keys)
	total := 0
	for _, mine := range turns {
		for _, one := range mine {
			if seen[one.token] {
				t.Errorf("token %d was given twice", one.token)
			}
			seen[one.token] = true
			byKey[one.key] = append(byKey[one.key], one)
			total++
		}
	}
	pairs := 0
	for _, all := range byKey {
		// By token, each must not have been sent after one of a higher token had been read.
		sort.Slice(all, func(i, j int) bool { return all[i].token < all[j].token })
		earliest := time.Time{} // when the first of those behind it was read
		for i := len(all) - 1; i >= 0; i-- {
			if !earliest.IsZero() && earliest.Before(all[i].sent) {
				t.Errorf("token %d was granted before one that the server had read %v earlier", all[i].token, all[i].sent.Sub(earliest))
			}
			if earliest.IsZero() || all[i].queued.Before(earliest) {
				earliest = all[i].queued
			}
			pairs++
		}
	}
	if total < len(turns) {
		t.Fatalf("only %d turns of %d clients: nothing was tested", total, len(turns))
	}
	t.Logf("%d turns, %d orders checked", total, pairs)
}
