package locks_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

var (
	seedFlag = flag.Uint64("seed", 0, "replay the random test of this seed, and no other")
	stepFlag = flag.Int("steps", stepsWanted(), "random steps of the model test")
)

// stepsWanted is a million, or what HOLDFAST_STEPS says.
func stepsWanted() int {
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_STEPS")); err == nil {
		return n
	}
	return 1_000_000
}

// runLength is how many steps one seed is run for.
const runLength = 5_000

// run takes one profile through the steps of one seed.
func run(p *profile, seed uint64, steps int, seen *coverage) (done int, err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := newDrawer(p, rng.IntN, seen)
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

// TestModel drives the table and the model with the same random commands.
//
//	go test ./internal/locks -run TestModel -seed N    replays one seed in every profile
//	go test ./internal/locks -run TestModel -steps N   or HOLDFAST_STEPS=N: how many steps in all
func TestModel(t *testing.T) {
	first, total, length := rand.Uint64(), 0, min(runLength, *stepFlag/len(profiles))
	if *seedFlag != 0 {
		first, *stepFlag = *seedFlag, len(profiles)*runLength
	}
	seen := &coverage{}
	for n := uint64(0); total < *stepFlag; n++ {
		p := &profiles[n%uint64(len(profiles))]
		seed := first + n/uint64(len(profiles))
		done, err := run(p, seed, min(length, *stepFlag-total), seen)
		total += done
		if err != nil {
			t.Fatalf("profile %q, -seed %d, step %d: %v", p.name, seed, done, err)
		}
	}
	list, missing := seen.counts()
	t.Logf("%d steps from seed %d on:\n%s", total, first, list)
	if missing != "" {
		t.Errorf("never reached in %d steps:\n%s", total, missing)
	}
}
