package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files and docs/configuration.md anew")

const pageIntro = `# Configuration

<!-- Made from cmd/server/config.go by "make generate": change it there. -->

` + "`holdfastd`" + ` is configured by environment variables alone and runs with none. ` + "`holdfastd --check-config`" + ` prints what
counts, where it came from, and every problem at once; a problem ends the start with exit code 2.

- **Empty** means unset. An explicit **0** means 0 where it lies in the allowed range, and is refused elsewhere: it never stands for
  the default.
- **Durations** are written like ` + "`250ms`, `30s` or `1h30m`" + `, **sizes** like ` + "`65536`, `512KiB` or `1GiB`" + `, whole numbers in
  decimal digits. Blanks around a value are refused.
- **From a file**: where the table says so, ` + "`…_FILE`" + ` names a file that holds the value; one newline at its end is dropped. Setting
  both is an error. The files are read again at SIGHUP: a new auth token counts from then on (connections that stand, stay), and so
  do new cluster secrets and a new log level. With a problem in them, all stays as it was and the log says why.
- An **unknown** ` + "`HOLDFAST_…`" + ` variable is an error that names the nearest known one. Left alone are what Kubernetes sets for a service of
  that name (` + "`HOLDFAST_SERVICE_HOST`, `HOLDFAST_PORT_…`" + `) and what the command line reads (` + "`HOLDFAST_ADDRS`, `HOLDFAST_HTTP_ADDRS`, `HOLDFAST_KEY`, `HOLDFAST_FENCING_TOKEN`" + `).

| variable | default | allowed | meaning |
|---|---|---|---|
`

const pageLater = `
## Not part of this version

These names are taken. To set one is an error, so that nobody relies on what is not there.

| variable | |
|---|---|
`

// TestConfigurationPage holds docs/configuration.md to the struct; -rewrite writes it.
func TestConfigurationPage(t *testing.T) {
	golden(t, "../../docs/configuration.md", configurationPage(t))
}

// golden compares got with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date (make generate, or go test -rewrite):\n%s", file, got)
	}
}

func configurationPage(t *testing.T) string {
	comments := fieldComments(t)
	var page strings.Builder
	page.WriteString(pageIntro)
	for _, one := range load(t).all {
		meaning := comments[one.field.Name]
		if meaning == "" {
			t.Errorf("%s has no comment", one.field.Name)
		}
		name := "`" + one.name + "`"
		if one.field.Tag.Get("file") != "" {
			name += " or `" + one.name + "_FILE`"
		}
		def := "–"
		if d := one.field.Tag.Get("default"); d != "" {
			def = "`" + d + "`"
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", name, def, one.permitted(), meaning)
	}
	page.WriteString(pageLater)
	for _, name := range slices.Sorted(maps.Keys(later)) {
		fmt.Fprintf(&page, "| `%s` | %s |\n", name, later[name])
	}
	return page.String()
}

// fieldComments returns the comment of each field of the struct config, as one line.
func fieldComments(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "config" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			comments[field.Names[0].Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
		}
		return false
	})
	return comments
}
