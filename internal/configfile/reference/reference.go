// Package reference writes the reference of a configuration from its structs and
// their comments, so that the page cannot differ from the code. Only tests
// import it.
package reference

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Page holds the text around the tables.
type Page struct {
	Title   string
	Program string // "vedette-agent"
	Intro   string // Markdown
	Root    string // directory of the module, in which the packages with the structs are
}

const aboutIgnored = "These keys are accepted because files of the predecessor or of Clouddriver contain them. If a file sets one to something other than its\n" +
	"default, %s says so at start and in `check`, with the reason. It is a warning for those marked with ⚠: without them, the program\n" +
	"behaves differently than the file asks for."

// Markdown writes a page about all keys of a configuration, in two parts: keys
// that work, and keys that are ignored. A key without a comment on its field is an
// error.
func Markdown(page Page, config any) (string, error) {
	keys := configfile.Keys(config)
	w, err := newWriter(page, keys)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&w.out, "# %s\n\n<!-- Generated from the comments of the package by its test: go test -run TestReference -update -->\n\n%s\n",
		page.Title, page.Intro)
	w.writeActive(keys)
	w.writeIgnored(keys, page.Program)
	return w.out.String(), w.err
}

// Reasons writes a Go file of the package with the reasons why keys have no effect, for messages of the
// program.
func Reasons(page Page, config any) (string, error) {
	keys := configfile.Keys(config)
	w, err := newWriter(page, keys)
	if err != nil {
		return "", err
	}
	w.out.WriteString("// Code generated from the comments of the package by its test: go test -run TestReference -update. DO NOT EDIT.\n\n" +
		"package config\n\nimport \"github.com/vedette-io/vedette/internal/configfile\"\n\n" +
		"// reasons are why keys have no effect.\nvar reasons = configfile.Reasons{\n")
	for _, key := range ignoredKeys(keys) {
		fmt.Fprintf(&w.out, "\t%q: %q,\n", key.Path, w.comment(key))
	}
	w.out.WriteString("}\n")
	source, err := format.Source([]byte(w.out.String()))
	if err != nil {
		return "", fmt.Errorf("format the reasons: %w", err)
	}
	return string(source), w.err
}

// module is the path of the packages with the structs.
const module = "github.com/vedette-io/vedette/"

// newWriter reads the comments of the packages that have the structs of some keys.
func newWriter(page Page, keys []configfile.Key) (*writer, error) {
	comments, read := map[string]string{}, map[string]bool{}
	for _, key := range keys {
		for _, name := range []string{key.GoType, key.Group} {
			pkg := name[:max(0, strings.LastIndexByte(name, '.'))]
			if pkg == "" || read[pkg] {
				continue
			}
			read[pkg] = true
			if err := collectPackage(pkg, filepath.Join(page.Root, strings.TrimPrefix(pkg, module)), comments); err != nil {
				return nil, err
			}
		}
	}
	return &writer{comments: comments}, nil
}

type writer struct {
	out      strings.Builder
	comments map[string]string // by "package.Type" and "package.Type.Field"
	err      error             // the first key without a comment
}

// comment returns the comment of a key's field.
func (w *writer) comment(key configfile.Key) string {
	comment := w.comments[key.GoType+"."+key.GoField]
	if comment == "" && w.err == nil {
		w.err = fmt.Errorf("%s: the field %s.%s has no comment", key.Path, key.GoType, key.GoField)
	}
	return comment
}

func (w *writer) writeActive(keys []configfile.Key) {
	section := "-"
	for _, key := range keys {
		if key.Status != configfile.ActiveKey || key.Type == "" && !w.isSubgroup(key, keys) {
			continue
		}
		if name := sectionOf(key); name != section {
			section = name
			w.writeHeading(name, keys)
		}
		if key.Type == "" {
			w.writeGroupRow(key)
		} else {
			w.writeRow(key)
		}
	}
}

// isSubgroup reports whether a group within a section has a row of its own: it has
// a comment, and keys that work.
func (w *writer) isSubgroup(key configfile.Key, keys []configfile.Key) bool {
	if w.groupComment(key) == "" || sectionOf(key) == "" || key.Path == "kubernetes.accounts" || key.Path == "services.fiat" {
		return false
	}
	for _, k := range keys {
		if k.Type != "" && k.Status == configfile.ActiveKey && (strings.HasPrefix(k.Path, key.Path+".") ||
			strings.HasPrefix(k.Path, key.Path+"[].")) {
			return true
		}
	}
	return false
}

// groupComment returns the comment of a group's field, or else of its type.
func (w *writer) groupComment(key configfile.Key) string {
	if comment := w.comments[key.GoType+"."+key.GoField]; comment != "" {
		return comment
	}
	return w.comments[key.Group]
}

func (w *writer) writeGroupRow(key configfile.Key) {
	fmt.Fprintf(&w.out, "| `%s` | group |  | %s |\n", key.Path, escape(w.groupComment(key)))
}

// sectionOf returns the first word of a path; empty for keys at the top.
func sectionOf(key configfile.Key) string {
	first, _, below := strings.Cut(key.Path, ".")
	if !below {
		return ""
	}
	if strings.HasPrefix(key.Path, "kubernetes.accounts") {
		return "kubernetes.accounts[]"
	}
	return first
}

// writeHeading begins a section with the comment of its group's type.
func (w *writer) writeHeading(section string, keys []configfile.Key) {
	if section != "" {
		fmt.Fprintf(&w.out, "\n## `%s`\n", section)
	}
	for _, key := range keys {
		if comment := w.comments[key.Group]; key.Group != "" && sectionOfGroup(key) == section && comment != "" {
			fmt.Fprintf(&w.out, "\n%s\n", comment)
			break
		}
	}
	w.out.WriteString("\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
}

func sectionOfGroup(key configfile.Key) string {
	if key.Path == "services.fiat" {
		return "services"
	}
	return key.Path
}

// writeIgnored writes one row for a group that is ignored as a whole.
func (w *writer) writeIgnored(keys []configfile.Key, program string) {
	w.out.WriteString("\n## Accepted and ignored\n\n")
	fmt.Fprintf(&w.out, aboutIgnored, "`"+program+"`")
	w.out.WriteString("\n\n| Key | Why it has no effect |\n|---|---|\n")
	for _, key := range ignoredKeys(keys) {
		name := key.Path
		if key.Type == "" {
			name += ".*"
		}
		fmt.Fprintf(&w.out, "| `%s`%s | %s |\n", name, warnSign(key), escape(w.comment(key)))
	}
}

// ignoredKeys returns the keys that are ignored. A group that is ignored as a whole stands for all keys in it.
func ignoredKeys(keys []configfile.Key) (ignored []configfile.Key) {
	group := ""
	for _, key := range keys {
		if key.Status != configfile.IgnoredKey || group != "" && strings.HasPrefix(key.Path, group+".") {
			continue
		}
		if key.Type == "" {
			group = key.Path
			key.Warn = warnsWithin(keys, group)
		}
		ignored = append(ignored, key)
	}
	return ignored
}

func warnsWithin(keys []configfile.Key, group string) bool {
	for _, key := range keys {
		if key.Warn && strings.HasPrefix(key.Path, group+".") {
			return true
		}
	}
	return false
}

func warnSign(key configfile.Key) string {
	if key.Warn {
		return " ⚠"
	}
	return ""
}

func (w *writer) writeRow(key configfile.Key) {
	comment := w.comment(key)
	if len(key.Aliases) > 0 {
		comment += " Alias: `" + strings.Join(key.Aliases, "`, `") + "`."
	}
	if key.Env != "" {
		comment += " If unset, the environment variable `" + key.Env + "` applies."
	}
	value := key.Default
	if value != "" {
		value = "`" + value + "`"
	}
	fmt.Fprintf(&w.out, "| `%s`%s | %s | %s | %s |\n", key.Path, warnSign(key), key.Type, value, escape(comment))
}

func escape(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

func collectPackage(pkg, dir string, comments map[string]string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		for _, decl := range file.Decls {
			if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				collectTypes(types, pkg+".", comments)
			}
		}
	}
	return nil
}

func collectTypes(types *ast.GenDecl, prefix string, comments map[string]string) {
	for _, spec := range types.Specs {
		t := spec.(*ast.TypeSpec)
		comments[prefix+t.Name.Name] = paragraph(types.Doc)
		if s, ok := t.Type.(*ast.StructType); ok {
			collectFields(s, prefix+t.Name.Name+".", comments)
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
