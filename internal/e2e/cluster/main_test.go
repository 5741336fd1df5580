//go:build linux

package cluster

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	rounds = flag.Int("rounds", 5, "how often each gap in service is measured")
	strict = flag.Bool("strict", false, "hold the gaps against what is promised, without slack for a busy machine")
)

// patience is how long anything may take before a test gives up: machines that run tests may stand still for seconds.
const patience = 20 * time.Second

// program is the holdfastd that TestMain has built.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "holdfast-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "holdfastd")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../../cmd/server")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build holdfastd: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}
