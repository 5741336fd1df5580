// Package arch is the layering of the repository, as tests: which package may
// import which of ours, and what the core packages must not contain. Rules
// that are not executed last a month.
package arch

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "holdfast"

// root is the module's directory, seen from this package's.
const root = "../.."

// allowed says what of ours each package may import. A package below one that
// is listed, without an entry of its own, follows its parent's, and packages
// that share an entry may import each other.
var allowed = map[string][]string{
	// Ring 0 computes: no package of ours, and see purity_test.go.
	"wire":             {},
	"internal/locks":   {},
	"internal/replica": {},

	// Ring 1 is the node.
	"internal/node": {"internal/locks", "internal/replica"},

	// Ring 2 waits: the edges. They never meet; cmd/server joins them.
	"internal/native":       {"internal/node", "internal/locks", "wire"},
	"internal/web":          {"internal/node", "internal/locks", "internal/web/ui", "web/static"},
	"internal/web/ui":       {"internal/node", "internal/locks", "web/static"},
	"internal/replica/link": {"internal/replica"},
	"internal/mark":         {},
	"web/static":            {},

	// Ring 3 builds programs.
	"cmd/server": {"wire", "internal/locks", "internal/replica", "internal/node", "internal/native",
		"internal/web", "internal/web/ui", "internal/replica/link", "internal/mark", "web/static"},
	"cmd/holdfast": {"client", "wire"},

	// For users.
	"client":              {"wire"},
	"client/fence":        {},
	"client/holdfasttest": {"internal/node", "internal/native", "internal/locks", "internal/replica", "internal/replica/link"},
	"examples":            {"client"},

	// For tests only.
	"internal/arch": {},
	"internal/sim":  {"internal/node", "internal/locks", "internal/replica"},
	"internal/e2e":  {"internal/node", "internal/locks", "internal/native", "internal/web", "client", "wire"},
}

// inTests is what the tests of a package may import besides: the other side of
// a conversation, where the real one is a better partner than a mock.
var inTests = map[string][]string{
	"cmd/server":          {"client"},
	"internal/web/ui":     {"internal/web"},
	"cmd/holdfast":        {"client/holdfasttest"},
	"client":              {"client/holdfasttest"},
	"client/holdfasttest": {"client"},
	"internal/e2e":        {"internal/replica", "internal/replica/link"},
}

func TestImports(t *testing.T) {
	files, err := goFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found: is the root right?")
	}
	for _, finding := range checkImports(root, files) {
		t.Error(finding)
	}
}

// Each rule must be able to fail.
func TestImportsFixture(t *testing.T) {
	const tree = "testdata/tree"
	files, err := goFiles(tree)
	if err != nil {
		t.Fatal(err)
	}
	got := checkImports(tree, files)
	want := []string{
		"internal/locks/table.go:4: internal/locks may not import wire",
		"internal/locks/table_test.go:4: internal/locks may not import internal/node in its tests",
		"internal/node/node.go:6: internal/node may not import internal/native",
		"internal/replica/log/log.go:3: internal/replica/log may not import internal/replica/link",
		"internal/stray/stray.go: no rule for package internal/stray: give it one in internal/arch",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// goFiles lists the Go files below dir, relative to it. Folders that the go
// command passes over, and modules of their own, are not part of it.
func goFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if d.IsDir() && rel != "." && skipped(dir, rel) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(rel, ".go") {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	return files, err
}

func skipped(dir, rel string) bool {
	base := filepath.Base(rel)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	mod, _ := filepath.Glob(filepath.Join(dir, rel, "go.mod"))
	return len(mod) > 0
}

// checkImports returns one finding for each import, or package, that no rule permits.
func checkImports(dir string, files []string) []string {
	var findings []string
	for _, file := range files {
		pkg := path.Dir(file)
		rule, known := ruleOf(pkg)
		if !known {
			findings = append(findings, fmt.Sprintf("%s: no rule for package %s: give it one in internal/arch", file, pkg))
			continue
		}
		findings = append(findings, checkFile(dir, file, rule)...)
	}
	return findings
}

func checkFile(dir, file, rule string) []string {
	permitted, suffix := allowed[rule], ""
	if strings.HasSuffix(file, "_test.go") {
		permitted, suffix = slices.Concat(permitted, inTests[rule]), " in its tests"
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, filepath.Join(dir, file), nil, parser.ImportsOnly)
	if err != nil {
		return []string{err.Error()}
	}
	var findings []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return []string{err.Error()}
		}
		ours, isOurs := strings.CutPrefix(imported, module+"/")
		if !isOurs {
			continue
		}
		of, _ := ruleOf(ours)
		if of != rule && !slices.Contains(permitted, of) {
			findings = append(findings, fmt.Sprintf("%s:%d: %s may not import %s%s",
				file, fset.Position(spec.Pos()).Line, path.Dir(file), ours, suffix))
		}
	}
	return findings
}

// ruleOf names the entry of the table that pkg falls under: its own, or its
// nearest parent's.
func ruleOf(pkg string) (rule string, known bool) {
	for p := pkg; p != "." && p != "/"; p = path.Dir(p) {
		if _, ok := allowed[p]; ok {
			return p, true
		}
	}
	return "", false
}
