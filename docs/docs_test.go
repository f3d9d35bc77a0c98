package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/golden"
)

// functionLinks are links to functions: click NAME href "FILE#LINE" "FUNCTION"
// in a diagram, [FUNCTION](FILE#LINE) in text.
var functionLinks = []*regexp.Regexp{
	regexp.MustCompile(`(?P<head>click \w+ href ")(?P<file>[^"#]+)#L(?P<line>\d+)(?P<tail>" ")(?P<name>[\w.]+)(?P<end>")`),
	regexp.MustCompile(`(?P<head>\[)(?P<name>[\w.]+)(?P<tail>\]\()(?P<file>\.\./[^)#]+\.go)#L(?P<line>\d+)(?P<end>\))`),
}

// TestLinksLeadToFunctions checks that every link to a function leads to its first line.
func TestLinksLeadToFunctions(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		updated := string(text)
		for _, link := range functionLinks {
			updated = link.ReplaceAllStringFunc(updated, func(match string) string { return updateLink(t, link, file, match) })
		}
		if updated == string(text) {
			continue
		}
		if !golden.Updates() {
			t.Errorf("%s has links with outdated line numbers; go test ./docs -update corrects them", file)
			continue
		}
		if err := os.WriteFile(file, []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func updateLink(t *testing.T, link *regexp.Regexp, file, match string) string {
	part := func(name string) string {
		return link.FindStringSubmatch(match)[link.SubexpIndex(name)]
	}
	line, err := lineOf(filepath.Join(filepath.Dir(file), part("file")), part("name"))
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return match
	}
	return strings.Replace(match, "#L"+part("line"), fmt.Sprintf("#L%d", line), 1)
}

// lineOf finds "function" or "Type.method" in a file.
func lineOf(file, name string) (int, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && nameOf(fn) == name {
			return set.Position(fn.Pos()).Line, nil
		}
	}
	return 0, fmt.Errorf("%s has no function %s", file, name)
}

func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

var fileLink = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinkedFilesExist(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fileLink.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, m[1])
			}
		}
	}
}

var codePath = regexp.MustCompile("`((?:\\w[\\w.-]*/)+[\\w.-]+\\.go)`")

// TestCodePathsExist checks that the files of code exist that texts name without a link.
func TestCodePathsExist(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codePath.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", file, m[1])
			}
		}
	}
}

// TestNamedTestsExist checks that the tests exist that the guarantees and the threat
// model name. A name without a package is in the package named before; package
// vedette is the root package.
func TestNamedTestsExist(t *testing.T) {
	for file, minNamed := range map[string]int{"guarantees.md": 9, "security.md": 40} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`([\\w/]*)\\.(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
		if len(named) < minNamed {
			t.Errorf("%s names %d tests, want at least %d", file, len(named), minNamed)
		}
		dir := ""
		for _, m := range named {
			if m[1] != "" {
				dir = strings.TrimPrefix(m[1], "vedette")
			}
			if !hasTest(t, filepath.Join("..", dir), m[2]) {
				t.Errorf("%s names %q of %q, which does not exist", file, m[2], dir)
			}
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := lineOf(file, name); err == nil {
			return true
		}
	}
	return false
}

func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"../README.md", "../SECURITY.md", "../CONTRIBUTING.md", "../CHANGELOG.md"}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestGlossaryTypesExist checks that the types exist that the glossary names.
func TestGlossaryTypesExist(t *testing.T) {
	text, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(\\w+)\\.([A-Z]\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 30 {
		t.Fatalf("glossary.md names %d types, want at least 30", len(named))
	}
	types := exportedTypes(t)
	for _, m := range named {
		if name := m[1] + "." + m[2]; !types[name] {
			t.Errorf("glossary.md names type %s, which does not exist", name)
		}
	}
}

// exportedTypes returns the exported types of the module, as "package.Type".
func exportedTypes(t *testing.T) map[string]bool {
	declaration := regexp.MustCompile(`(?m)^type ([A-Z]\w*)`)
	clause := regexp.MustCompile(`(?m)^package (\w+)`)
	types := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg := clause.FindSubmatch(text)
		if pkg == nil {
			return fmt.Errorf("%s has no package clause", path)
		}
		for _, m := range declaration.FindAllSubmatch(text, -1) {
			types[string(pkg[1])+"."+string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return types
}
