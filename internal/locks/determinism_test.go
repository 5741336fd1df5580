package locks_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"testing"

	. "holdfast/internal/locks"
)

// TestDeterminism runs the same commands through several tables: replies and
// events are the same to the byte, whatever the seed of the hash tables.
func TestDeterminism(t *testing.T) {
	for i := range profiles {
		p := profiles[i]
		first := transcript(t, &p)
		p.cfg.Seed = 0xdecafbad
		if again := transcript(t, &p); again != first {
			t.Errorf("profile %q: %s, then %s", p.name, first, again)
		}
	}
}

// transcript sums up all that a table answers in some thousand steps.
func transcript(t *testing.T, p *profile) string {
	d := newDrawer(p, rand.New(rand.NewPCG(7, 7)).IntN, &coverage{})
	d.every = 1 << 30
	sum := sha256.New()
	d.log = func(fx *Effects) {
		d.remember(fx)
		write(sum, fx)
	}
	for d.steps < 3000 {
		if err := d.step(); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func write(sum hash.Hash, fx *Effects) {
	for i := range fx.Replies {
		fmt.Fprintf(sum, "%+v\n", fx.Replies[i])
	}
	for i := range fx.Events {
		e := fx.Events[i]
		if e.Origin != nil {
			fmt.Fprintf(sum, "%+v ", *e.Origin)
			e.Origin = nil
		}
		fmt.Fprintf(sum, "%+v\n", e)
	}
	fmt.Fprintln(sum, fx.Seq)
}
