package configfile

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxImportDepth limits how many files a chain of imports may have.
const maxImportDepth = 10

// importPath is the key with the files that a file imports.
const importPath = "spring.config.import"

// Imports is the value of spring.config.import: a path or a list of paths. The loader reads it
// before anything is decoded; the struct keeps it as it is written, for the list of settings.
type Imports struct{ paths []string }

// ConfigTypeName returns the type's name in the configuration reference.
func (Imports) ConfigTypeName() string { return "path or list of paths" }

// String returns "[a.yml, optional:b.yml]".
func (i *Imports) String() string { return "[" + strings.Join(i.paths, ", ") + "]" }

// UnmarshalConfig keeps the paths. The loader has reported all problems.
func (i *Imports) UnmarshalConfig(v Value) {
	for _, n := range importNodes(v.node) {
		i.paths = append(i.paths, n.text)
	}
}

// importNodes returns the values of spring.config.import.
func importNodes(n *node) []*node {
	if n.kind == listNode {
		return n.items
	}
	return []*node{n}
}

// fileImport is one path of spring.config.import.
type fileImport struct {
	at       Position
	path     string // may be relative to the importing file
	optional bool
}

// importsOf returns the imports of a document. Their placeholders refer to the document itself and
// to the environment, because the files that follow are not known yet.
func (l *loader) importsOf(d *document) (imports []fileImport) {
	value := d.root.lookup(importPath)
	if value == nil {
		return nil
	}
	for _, n := range importNodes(value) {
		if n.kind != scalarNode {
			l.report.Add(n.at, importPath, "%q must be a path or a list of paths, got %s", importPath, n)
			continue
		}
		e := expander{roots: []*node{d.root}, env: l.options.lookup, remaining: maxExpansions, total: l.expansions}
		text, err := e.expand(n.text)
		if err != nil {
			l.report.Add(n.at, importPath, "%q: %s", importPath, err)
			continue
		}
		for part := range strings.SplitSeq(text, ",") {
			if i, ok := l.parseImport(n.at, part); ok {
				imports = append(imports, i)
			}
		}
	}
	return imports
}

// otherScheme matches locations that are not files, such as configserver:http://host.
var otherScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)

// parseImport parses "optional:file:path". Both prefixes may be left out. It returns false if there
// is nothing to read.
func (l *loader) parseImport(at Position, text string) (fileImport, bool) {
	path, optional := strings.CutPrefix(strings.TrimSpace(text), "optional:")
	path = strings.TrimPrefix(path, "file:")
	switch {
	case path == "":
		l.report.Add(at, importPath, "%q must be the path of a file, got %s", importPath, quote(text))
	case otherScheme.MatchString(path) && optional:
		l.report.Notices = append(l.report.Notices,
			at.String()+": "+importPath+": "+quote(path)+" is not imported, because only files can be imported")
	case otherScheme.MatchString(path):
		l.report.Add(at, importPath, "%q: only files can be imported, got %s: mount it as a file", importPath, quote(path))
	default:
		return fileImport{at, path, optional}, true
	}
	return fileImport{}, false
}

func (l *loader) addImport(from *file, i fileImport) {
	path := filepath.Clean(i.path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(from.path), path)
	}
	_, isKnown := l.files[path]
	switch {
	case slices.Contains(l.importing, path):
		chain := append(slices.Clone(l.importing[slices.Index(l.importing, path):]), path)
		l.report.Add(i.at, importPath, "the file imports itself: %s: remove one of these imports", printable(strings.Join(chain, " imports ")))
	case len(l.importing) > maxImportDepth:
		l.report.Add(i.at, importPath, "the chain of imports has more than %d files: %s", maxImportDepth,
			printable(strings.Join(l.importing, " imports ")))
	case !isKnown && (len(l.files) >= maxLookedFor || l.filesRead() >= maxFiles):
		l.report.Add(i.at, importPath, "more than %d files are imported: put their settings into fewer files", maxFiles)
	default:
		l.addImportedFile(l.file(path), i)
	}
}

func (l *loader) addImportedFile(f *file, i fileImport) {
	switch {
	case f.state == FileMissing && i.optional:
	case f.state == FileMissing:
		l.report.Add(i.at, importPath, "%q: the file %s does not exist: create it, or write \"optional:%s\" if it may be missing",
			importPath, printable(f.path), printable(i.path))
	case f.err != nil:
		l.report.Add(i.at, importPath, "%q: %s: %s", importPath, printable(f.path), f.err)
	default:
		l.addFile(f)
	}
}

// filesRead returns the number of files that were found.
func (l *loader) filesRead() int {
	count := 0
	for _, f := range l.files {
		if f.err == nil {
			count++
		}
	}
	return count
}
