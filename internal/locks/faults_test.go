//go:build faults

package locks_test

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

// caughtWithin is how many random steps may pass before a fault is noticed.
const caughtWithin = 100_000

// TestFaults puts one fault after the other into the table's source, with go's
// -overlay, and lets TestModel find it: the model is worth what it notices. No
// fault is in the program itself.
//
//	go test -tags faults -run TestFaults -timeout 20m ./internal/locks
//
// A fault whose place is gone fails: write it anew for the code as it is.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			steps, how := f.hunt(t)
			if steps < 0 {
				t.Fatalf("not noticed within %d steps", caughtWithin)
			}
			t.Logf("noticed after %d steps: %s", steps, how)
		})
	}
}

// TestHarmless does the same with changes that must make no difference.
func TestHarmless(t *testing.T) {
	for _, f := range harmless {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if steps, how := f.hunt(t); steps >= 0 {
				t.Fatalf("after %d steps: %s", steps, how)
			}
		})
	}
}

// fault is a change of the source: in file, old becomes changed.
type fault struct{ name, file, old, changed string }

var noticed = regexp.MustCompile(`after (\d+) steps: (.*)`)

// hunt builds the package's tests with the fault and runs the random test. It
// returns how many steps it took, -1 if nothing was noticed.
func (f *fault) hunt(t *testing.T) (steps int, how string) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "faulty.test")
	build := exec.Command("go", "test", "-c", "-overlay", f.overlay(t, dir), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, binary, "-test.run", "^TestModel$", "-seed", "1",
		"-steps", strconv.Itoa(caughtWithin)).CombinedOutput()
	if err == nil {
		return -1, ""
	}
	if ctx.Err() != nil {
		return caughtWithin, "it hangs"
	}
	found := noticed.FindSubmatch(out)
	if found == nil {
		t.Fatalf("the random test failed otherwise: %v\n%s", err, out)
	}
	steps, _ = strconv.Atoi(string(found[1]))
	return steps, string(found[2])
}

// overlay writes the changed source and the file that tells go about it.
func (f *fault) overlay(t *testing.T, dir string) string {
	source, err := filepath.Abs(f.file)
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
	changed := filepath.Join(dir, f.file)
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
