package arch

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// corePackages compute and never wait: from state, time and input to outputs.
// A run of them is a list of inputs that can be replayed, which holds only as
// long as nothing in them asks the world for anything.
var corePackages = []string{"wire", "internal/locks", "internal/replica"}

// impure names the packages, with those below them, that a core package must not import.
var impure = []string{
	"net", "os", "syscall", // the world
	"sync", "context", "testing", // goroutines and their company
	"log",                         // the core reports facts, the edge chooses words
	"crypto/rand", "hash/maphash", // randomness that no seed repeats
	"runtime/debug",
}

// clock names the functions of package time that read or wait for a clock.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Sleep", "Tick"}

// seeded names the functions of math/rand and math/rand/v2 that need a seed; all others share an unseeded source.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf"}

func TestPurity(t *testing.T) {
	for _, pkg := range corePackages {
		dir := filepath.Join(root, pkg)
		if names, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(names) == 0 {
			continue // not built yet
		}
		for _, finding := range checkPurity(t, dir) {
			t.Error(finding)
		}
	}
}

// Each rule must be able to fail: every fixture says in its comments what is found on that line.
func TestPurityFixtures(t *testing.T) {
	fixtures, err := filepath.Glob("testdata/purity/*")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("fixtures %v: %v", fixtures, err)
	}
	for _, dir := range fixtures {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got, want := checkPurity(t, dir), wanted(t, dir)
			if !slices.Equal(got, want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
		})
	}
}

// wanted collects the "// want: …" comments of a fixture as findings.
func wanted(t *testing.T, dir string) []string {
	t.Helper()
	var want []string
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if _, what, ok := strings.Cut(line, "// want: "); ok {
				want = append(want, fmt.Sprintf("%s:%d: %s", name, i+1, what))
			}
		}
	}
	return want
}

// scan is the search of one package.
type scan struct {
	fset     *token.FileSet
	info     *types.Info
	sorted   map[ast.Expr]bool // calls whose result is sorted at once
	findings []string
}

// checkPurity returns what a core package must not contain, in the order of its files and lines. Its tests may.
func checkPurity(t *testing.T, dir string) []string {
	t.Helper()
	s := &scan{
		fset:   token.NewFileSet(),
		info:   &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}},
		sorted: map[ast.Expr]bool{},
	}
	var files []*ast.File
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	conf := types.Config{Importer: importer.Default()}
	if _, err := conf.Check(dir, s.fset, files, s.info); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		ast.Inspect(file, s.visit)
	}
	return s.findings
}

func (s *scan) report(n ast.Node, format string, args ...any) {
	at := s.fset.Position(n.Pos())
	s.findings = append(s.findings, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, fmt.Sprintf(format, args...)))
}

func (s *scan) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		s.visitImport(n)
	case *ast.GoStmt:
		s.report(n, "starts a goroutine")
	case *ast.SelectStmt:
		s.report(n, "select")
	case *ast.SendStmt:
		s.report(n, "sends on a channel")
	case *ast.ChanType:
		s.report(n, "channel type")
	case *ast.RangeStmt:
		s.visitRange(n)
	case *ast.CallExpr:
		s.visitCall(n)
	case *ast.SelectorExpr:
		s.visitSelector(n)
	}
	return true
}

func (s *scan) visitImport(n *ast.ImportSpec) {
	imported := strings.Trim(n.Path.Value, `"`)
	first, _, _ := strings.Cut(imported, "/")
	if strings.Contains(first, ".") {
		s.report(n, "imports %s: the core needs only the standard library", imported)
	}
	for _, p := range impure {
		if imported == p || strings.HasPrefix(imported, p+"/") {
			s.report(n, "imports %s", imported)
		}
	}
}

// A map is ranged over in another order each time, so nothing may follow from it.
func (s *scan) visitRange(n *ast.RangeStmt) {
	if _, ok := s.info.Types[n.X].Type.Underlying().(*types.Map); ok {
		s.report(n, "ranges over a map")
	}
}

// slices.Sorted(maps.Keys(m)) is the way to walk a map.
func (s *scan) visitCall(n *ast.CallExpr) {
	if pkg, name := s.called(n.Fun); pkg == "slices" && strings.HasPrefix(name, "Sorted") {
		for _, arg := range n.Args {
			if call, ok := arg.(*ast.CallExpr); ok {
				s.sorted[call.Fun] = true
			}
		}
	}
}

func (s *scan) visitSelector(n *ast.SelectorExpr) {
	pkg, name := s.called(n)
	switch {
	case pkg == "time" && slices.Contains(clock, name):
		s.report(n, "reads the clock: time.%s", name)
	case strings.HasPrefix(pkg, "math/rand") && !slices.Contains(seeded, name):
		s.report(n, "unseeded randomness: %s.%s", pkg, name)
	case pkg == "maps" && slices.Contains([]string{"All", "Keys", "Values"}, name) && !s.sorted[n]:
		s.report(n, "ranges over a map: maps.%s", name)
	}
}

// called resolves a function of a package, under whatever name that package is imported.
func (s *scan) called(fun ast.Expr) (pkg, name string) {
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	f, ok := s.info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return "", ""
	}
	return f.Pkg().Path(), f.Name()
}
