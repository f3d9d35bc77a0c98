package configfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
)

const (
	maxFiles      = 100      // files with settings
	maxLookedFor  = 500      // files, whether or not they exist
	maxLayers     = 1000     // documents, counting each import of a file
	maxTotalBytes = 16 << 20 // of all files together
)

// loader reads files and the files that they import.
type loader struct {
	options  Options
	target   reflect.Type // the struct that is filled
	report   *Report
	read     func(path string) ([]byte, error) // returns errNotFound if there is no such file
	profiles []string                          // active ones, lowest precedence first

	files     map[string]*file
	names     map[string]string // path of a file by its name in positions
	nodes     int               // of all files
	bytes     int               // of all files
	layers    []*document       // lowest precedence first; a document counts at its last place
	importing []string          // files whose imports are being read

	tooManyLayers bool // reported
	expansions    *expansionBudget
}

// file is a file that was looked for.
type file struct {
	path      string
	state     FileState
	err       error // if it does not exist or cannot be read
	documents []*document
	// unrelated says that the file was reported because it is not a configuration of this program.
	unrelated, isCompared bool
}

// newLoader returns a loader for the struct that into points to.
func newLoader(o Options, into any, read func(string) ([]byte, error)) *loader {
	r := &Report{}
	return &loader{options: o, target: structOf(into), report: r, read: read, profiles: activeProfiles(o, r),
		files: map[string]*file{}, names: map[string]string{}, expansions: newExpansionBudget()}
}

// file reads and parses a file, once.
func (l *loader) file(path string) *file {
	if f, isKnown := l.files[path]; isKnown {
		return f
	}
	f := &file{path: path, state: FileRead}
	l.files[path] = f
	data, err := l.read(path)
	l.bytes += len(data)
	switch {
	case isNotFound(err):
		f.state, f.err = FileMissing, err
	case err != nil:
		f.state, f.err = FileUnreadable, err
	case l.bytes > maxTotalBytes:
		f.state, f.err = FileUnreadable, errTooManyBytes
	case isBlank(data):
		f.state = FileEmpty
	default:
		f.documents = parseDocuments(&treeBuilder{file: l.nameInPositions(path), report: l.report, nodes: &l.nodes}, data)
	}
	l.report.Files = append(l.report.Files, File{path, f.state})
	return f
}

var errTooManyBytes = errors.New("read the file: the files of the configuration are larger than 16 MiB together")

func isNotFound(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// nameInPositions returns the file name without the directory, to keep messages short, unless another
// file has the same name.
func (l *loader) nameInPositions(path string) string {
	name := filepath.Base(path)
	if other, taken := l.names[name]; taken && other != path {
		return path
	}
	l.names[name] = path
	return name
}

// addFile adds the documents of a file that apply, each with its imports.
func (l *loader) addFile(f *file) {
	l.importing = append(l.importing, f.path)
	defer func() { l.importing = l.importing[:len(l.importing)-1] }()
	if !f.isCompared {
		f.unrelated, f.isCompared = l.rejectUnrelated(f, len(l.layers) == 0), true
	}
	if f.unrelated {
		return
	}
	var first *document
	for _, d := range f.documents {
		applies, restricted := d.appliesTo(l.profiles, l.report)
		switch {
		case !restricted && first != nil:
			l.report.Add(d.at, "", "a second YAML document starts here: a file must contain only one, besides documents "+
				"with \"spring.config.activate.on-profile\"")
			return
		case !restricted:
			first = d
		}
		if applies {
			l.addDocument(f, d)
		}
	}
}

// addDocument adds a document and its imports, which override it.
func (l *loader) addDocument(f *file, d *document) {
	if len(l.layers) >= maxLayers {
		if !l.tooManyLayers {
			l.report.Add(d.at, importPath, "files are imported more than %d times: import each file only once", maxLayers)
		}
		l.tooManyLayers = true
		return
	}
	l.layers = append(l.layers, d)
	for _, i := range l.importsOf(d) {
		l.addImport(f, i)
	}
}

// content returns what the files contain, with our names of keys.
func (l *loader) content() *Content {
	s := &Content{report: l.report, options: l.options, roots: l.roots()}
	if l.rejectOther(s.roots) {
		s.roots = nil // its keys are not misspelt ones of this program
	}
	for layer, root := range s.roots {
		s.originals = append(s.originals, root.clone())
		for _, rename := range l.options.Renames {
			rename.apply(root)
		}
		root.setLayer(layer)
	}
	s.expansions = *l.expansions
	return s
}

// roots returns the tree of each document once, lowest precedence first. What is imported twice
// overrides whatever the later import overrides.
func (l *loader) roots() []*node {
	var roots []*node
	seen := map[*document]bool{}
	for _, d := range slices.Backward(l.layers) {
		if !seen[d] {
			seen[d] = true
			roots = append(roots, d.root)
		}
	}
	slices.Reverse(roots)
	return roots
}
