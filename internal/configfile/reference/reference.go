// Package reference writes the reference of a configuration from its structs and
// their comments, so that what users read can't differ from what counts. Only
// tests import it.
package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Page says what stands around the tables.
type Page struct {
	Title string
	Intro string // Markdown
	Dir   string // of the package with the structs
}

// Markdown writes a page about all keys of a configuration. A key whose field
// has no comment is an error.
func Markdown(page Page, config any) (string, error) {
	comments, err := commentsIn(page.Dir)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n<!-- Written from the comments of the package by its test: go test -run TestReference -update -->\n\n%s\n", page.Title, page.Intro)
	section := "-"
	for _, key := range configfile.Keys(config) {
		if name := sectionOf(key); name != section {
			section = name
			writeHeading(&out, name, comments[key.Group])
		}
		if key.Type == "" {
			continue
		}
		comment := comments[key.GoType+"."+key.GoField]
		if comment == "" {
			return "", fmt.Errorf("%s: the field %s.%s has no comment", key.Path, key.GoType, key.GoField)
		}
		writeRow(&out, key, comment)
	}
	return out.String(), nil
}

// sectionOf is the first word of a path that has more below it; empty for keys
// at the top.
func sectionOf(key configfile.Key) string {
	first, _, below := strings.Cut(strings.TrimSuffix(key.Path, "[]"), ".")
	if !below && key.Type != "" {
		return ""
	}
	if strings.HasPrefix(key.Path, "kubernetes.accounts") {
		return "kubernetes.accounts[]"
	}
	return first
}

func writeHeading(out *strings.Builder, name, comment string) {
	if name != "" {
		fmt.Fprintf(out, "\n## `%s`\n", name)
		if comment != "" {
			fmt.Fprintf(out, "\n%s\n", comment)
		}
	}
	out.WriteString("\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
}

func writeRow(out *strings.Builder, key configfile.Key, comment string) {
	if key.Unused {
		comment = "*No effect yet.* " + comment
	}
	if len(key.Aliases) > 0 {
		comment += " Also: `" + strings.Join(key.Aliases, "`, `") + "`."
	}
	if key.Env != "" {
		comment += " Where it is not set, the environment variable `" + key.Env + "` counts."
	}
	value := key.Default
	if value != "" {
		value = "`" + value + "`"
	}
	fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", key.Path, key.Type, value, strings.ReplaceAll(comment, "|", "\\|"))
}

// commentsIn gathers a package's comments by "Type" and "Type.Field".
func commentsIn(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	comments := map[string]string{}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		for _, decl := range file.Decls {
			if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				collectTypes(types, comments)
			}
		}
	}
	return comments, nil
}

func collectTypes(types *ast.GenDecl, comments map[string]string) {
	for _, spec := range types.Specs {
		t := spec.(*ast.TypeSpec)
		comments[t.Name.Name] = paragraph(types.Doc)
		if s, ok := t.Type.(*ast.StructType); ok {
			collectFields(s, t.Name.Name+".", comments)
		}
	}
}

func collectFields(s *ast.StructType, prefix string, comments map[string]string) {
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			comments[prefix+name.Name] = paragraph(f.Doc)
			if inner, ok := f.Type.(*ast.StructType); ok {
				collectFields(inner, prefix+name.Name+".", comments)
			}
		}
	}
}

func paragraph(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}
