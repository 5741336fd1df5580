package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	oneSeed = flag.Uint64("seed", 0, "play this one history and print it")
	from    = flag.Uint64("from", 1, "the first seed")
	seeds   = flag.Uint64("seeds", 200, "how many histories")
	shown   = flag.Int("shown", 3, "how many bad histories are shrunk and printed")
	first   = flag.Bool("first", false, "stop at the first bad history, and do not shrink it")
	without = flag.String("without", "", "faults to leave out of -seed, by their numbers with commas")
)

func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		h := newHistory(*oneSeed)
		for _, f := range strings.Split(*without, ",") {
			var i int
			if n, _ := fmt.Sscan(f, &i); n == 1 {
				h.skip[i] = true
			}
		}
		h.print()
		fault := h.run()
		t.Log(strings.Join(h.lines, "\n"))
		if fault != "" {
			t.Error(fault)
		}
		return
	}
	begin := time.Now()
	bad := campaign(*from, *seeds)
	t.Logf("%d histories from seed %d on in %v", *seeds, *from, time.Since(begin).Round(time.Second))
	if *first && len(bad) > 0 {
		h := newHistory(bad[0])
		h.run()
		t.Fatal(h.verdict())
	}
	for i, seed := range bad {
		if i == *shown {
			break
		}
		h := shrink(seed)
		t.Errorf("%s\n%s", strings.Join(h.lines, "\n"), h.verdict())
	}
	if len(bad) > 0 {
		t.Errorf("%d of %d histories are bad: seeds %v", len(bad), *seeds, bad[:min(len(bad), 20)])
	}
}

// TestMain lets the garbage lie for longer: a history makes little of it, and
// twenty thousand are to be over in three minutes.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// campaign plays histories on all processors and returns the seeds that are bad.
func campaign(from, seeds uint64) (bad []uint64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var next atomic.Uint64
	var stop atomic.Bool
	for range 2 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < seeds && !stop.Load(); i = next.Add(1) - 1 {
				if newHistory(from+i).run() != "" {
					mu.Lock()
					bad = append(bad, from+i)
					stop.Store(*first)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return bad
}

// shrink plays a bad history again and again, with one fault less each time,
// and returns the shortest that is still bad, played with its lines.
func shrink(seed uint64) *history {
	skip := map[int]bool{}
	for i := newHistory(seed).steps - 1; i >= 0; i-- {
		h := newHistory(seed)
		h.skip = map[int]bool{i: true}
		for j := range skip {
			h.skip[j] = true
		}
		if h.run() != "" {
			skip[i] = true
		}
	}
	h := newHistory(seed)
	h.skip = skip
	h.print()
	h.run()
	return h
}

// verdict says what is wrong and how to see it again.
func (h *history) verdict() string {
	var left []string
	for i := range h.steps {
		if h.skip[i] {
			left = append(left, fmt.Sprint(i))
		}
	}
	return fmt.Sprintf("seed %d (%s): %s\nplay it again with -run Simulation$ -seed %d -without '%s' -v", h.seed, h.profile, h.c.fault, h.seed, strings.Join(left, ","))
}
