package locks_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// How to use the random test:
//
//	go test ./internal/locks -run TestModel$ -v                      a million steps, and what they reached
//	MODEL_STEPS=10000000 go test ./internal/locks -run …    as many as that (so does -steps)
//	go test ./internal/locks -run TestModel$ -seed 7 -profile shared replay
var (
	seedFlag    = flag.Uint64("seed", 0, "first seed of the random test; 0 = a new one each time")
	profileFlag = flag.String("profile", "", "the only profile of the random test")
	stepsFlag   = flag.Int("steps", stepsWanted(), "steps of the random test")
)

func stepsWanted() int {
	if n, err := strconv.Atoi(os.Getenv("MODEL_STEPS")); err == nil {
		return n
	}
	return 1_000_000
}

// runLength is how many steps one seed is run for: enough to get everywhere,
// and short enough for a hundred tables of each profile.
const runLength = 4_000

// TestModel drives the table and the model with the same random commands, each
// profile in turn.
func TestModel(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64() >> 1
	}
	seen, total := &coverage{}, 0
	for ; total < *stepsFlag; seed++ {
		for i := range profiles {
			p := &profiles[i]
			if *profileFlag != "" && *profileFlag != p.name {
				continue
			}
			done, err := run(p, seed, min(runLength, *stepsFlag/len(profiles)), seen)
			total += done
			if err != nil {
				t.Fatalf("after %d steps: -seed %d -profile %q, its step %d: %v", total, seed, p.name, done, err)
			}
		}
	}
	list, missing := seen.counts()
	t.Logf("%d steps, last seed %d:\n%s", total, seed-1, list)
	if missing != "" && *profileFlag == "" {
		t.Errorf("never reached in %d steps:\n%s", total, missing)
	}
}

// run takes one profile through the steps of one seed.
func run(p *profile, seed uint64, steps int, seen *coverage) (done int, err error) {
	d := newDrawer(p, rand.New(rand.NewPCG(seed, 1)).IntN, seen)
	d.every = 16
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("panic: %v", broken)
		}
		done = d.steps
	}()
	for d.steps < steps {
		if err := d.step(); err != nil {
			return d.steps, err
		}
	}
	return d.steps, d.compareAll()
}
