//go:build faults

package sim

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFaults breaks one rule after the other in the source, with go's -overlay,
// and lets TestSimulation find it within a stated number of histories. No
// switch for it is in the program itself.
//
//	go test -tags faults -run TestFaults -timeout 30m ./internal/sim
//
// A fault whose place is gone fails: write it anew for the code as it is.
func TestFaults(t *testing.T) {
	for _, f := range rules {
		t.Run(f.name, func(t *testing.T) {
			if seed, how := f.hunt(t); seed == 0 {
				t.Fatalf("not noticed within %d histories", f.within)
			} else {
				t.Logf("noticed by history %d: %s", seed, how)
			}
		})
	}
}

// rule is a rule and how it is broken: in file, old becomes changed.
type rule struct {
	name, file   string
	old, changed string
	within       int // histories
}

var found = regexp.MustCompile(`(?m)seed (\d+) \(.*`)

// hunt builds the simulation with the fault and plays histories until one is
// bad, or dies. It returns 0 where none is.
func (f *rule) hunt(t *testing.T) (seed int, how string) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "faulty.test")
	build := exec.Command("go", "test", "-c", "-overlay", f.overlay(t, dir), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, binary, "-test.run", "^TestSimulation$", "-first", "-seeds", strconv.Itoa(f.within)).CombinedOutput()
	switch at := found.FindSubmatch(out); {
	case err == nil:
		return 0, ""
	case ctx.Err() != nil:
		t.Fatal("it hangs")
	case at != nil:
		seed, _ = strconv.Atoi(string(at[1]))
		return seed, string(at[0])
	}
	text, _, _ := strings.Cut(string(out), "\n")
	return -1, text // a panic says what is wrong
}

// overlay writes the changed source and the file that tells go about it.
func (f *rule) overlay(t *testing.T, dir string) string {
	source, err := filepath.Abs(filepath.Join("..", f.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), f.old); n != 1 {
		t.Fatalf("%s has this %d times, not once:\n%s", f.file, n, f.old)
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), f.old, f.changed, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

var rules = []rule{
	{"a reign's tokens start below those heard of", "node/carryout.go",
		"return max(locks.Token(heard), n.table.Stats().Highest) + locks.Token(gap)", "return 0", 300},
	{"promote without catching up", "replica/succession.go", "ahead := m.ahead(e.tried)\n", "ahead := Nobody\n_ = e\n", 500},
	{"promote while a third node hears the active", "replica/succession.go",
		"claimed = claimed || m.alive(r) && ok && age < m.cfg.Suspicion", "claimed = claimed && m.alive(r) && ok && age < m.cfg.Suspicion", 2000},
	{"drop the loser's table", "node/transfer.go", "n.table.Merge(now, n.takeStash(a.Peer), fx)", "n.takeStash(a.Peer)", 300},
	{"forget an inherited release", "locks/merge.go", "m.ended[*theirs.at(i)] = endedThere", "_ = i", 500},
	{"merge what was released here", "locks/merge.go", "m.ended[*ours.at(i)] |= endedHere", "_ = i", 500},
	{"the lower of two holders stays", "locks/merge.go", "return cmp.Compare(b.c.id, a.c.id)", "return cmp.Compare(a.c.id, b.c.id)", 500},
	{"serve after activate", "node/parked.go", "if n.isActiveLocked() || n.lapsed {\n\t\treturn parks", "if n.lapsed {\nreturn serves\n}\nif n.isActiveLocked() {\n\t\treturn parks", 300},
	{"serve while frozen", "replica/machine.go", "m.role == Active && m.frozen == 0 &&", "m.role == Active &&", 300},
	{"serve before asking after a pause", "replica/machine.go", "&& now.Sub(m.waking.lastTick) <= m.pauseBound()", "&& now > 0", 1000},
	{"empty the ended set too early", "node/transfer.go", "next := n.ended.upto(at.Seq)", "next := n.ended.upto(1 << 62)\n_ = at", 500},
	{"a snapshot leaves out what ended", "locks/snapshot.go", "for below > t.ended.first {", "for below > t.ended.first && below == 0 {", 500},
	{"answer before a standby has acknowledged", "node/gate.go", "return n.acked &&", "return false &&", 500},
	{"forget what was parked", "node/parked.go", "all := n.parked\n", "all := n.parked[:0]\n", 300},
	{"forget who waited at a hand-off", "node/carryout.go", "all := n.stranded\n", "all := n.stranded[:0]\n", 300},
	{"keep the sessions at a hand-off", "node/carryout.go", "n.table.StepDown(fx)\n", "\n", 300},
	{"half a snapshot counts as a state", "replica/follow.go", "f.phase, m.whole = replacing, false", "f.phase, m.whole = replacing, true", 1000},
	{"a queue is served from its end after a promotion", "locks/apply.go", "c.prev = k.qtail\n", "c.prev = k.qtail\nif k.waiters > 0 && e.Ticket[15]%5 == 0 {\nreturn\n}\n", 300},
}
