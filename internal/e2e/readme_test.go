package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// blocks returns the README's code blocks of one language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("the README has no block of %s", language)
	}
	return found
}

// TestReadmeCommands runs every shell block of the README as it stands, but for
// the addresses, against a fresh server.
func TestReadmeCommands(t *testing.T) {
	d := start(t)
	cli := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", cli, "../../cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("build holdfast: %v\n%s", err, out)
	}
	for _, block := range blocks(t, "sh") {
		script := strings.NewReplacer("localhost:7621", strings.TrimPrefix(d.url, "http://"), "bin/holdfast", cli).Replace(block)
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "HOLDFAST_ADDRS="+d.native)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), `"status":4`) || strings.Contains(string(out), `"status":5`) {
			t.Errorf("%s\nended with %v and printed\n%s", block, err, out)
		}
	}
}

// TestReadmeGo holds the README's snippet to the example that it comes from,
// and runs that.
func TestReadmeGo(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "examples/quickstart/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	inFunction := strings.ReplaceAll("\n"+string(source), "\n\t", "\n")
	for _, block := range blocks(t, "go") {
		if !strings.Contains(inFunction, block) {
			t.Errorf("examples/quickstart does not contain the README's\n%s", block)
		}
	}
	d := start(t)
	cmd := exec.Command("go", "run", "./examples/quickstart", d.native)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "fencing token") {
		t.Errorf("go run ./examples/quickstart: %v\n%s", err, out)
	}
}
