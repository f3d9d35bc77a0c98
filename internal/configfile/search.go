package configfile

import (
	"path/filepath"
	"strings"
)

// Place is where a configuration may be: the files of a name in a directory, such as
// /opt/armory/config and armory-agent.
type Place struct{ Dir, Name string }

// Search says which files to read: a base file, and beside it an overlay for each active profile,
// such as armory-agent-local.yml. Overlays override the base file, and later profiles earlier ones.
type Search struct {
	// File is the base file, which must exist. If it is empty, Places are searched.
	File string
	// Places are searched in this order. The first with a file that has content is used, and no other.
	// In each, name.yaml is preferred; name.yml is read if name.yaml is missing or has no content.
	Places []Place
}

// FileState says what was found when a file was looked for.
type FileState int

// States of a file.
const (
	FileMissing    FileState = iota // it does not exist
	FileEmpty                       // it has no content
	FileUnused                      // it has content, and another file is used instead
	FileUnreadable                  // it exists and cannot be read
	FileRead                        // its settings are used
)

// File is a file that was looked for.
type File struct {
	Path  string
	State FileState
}

// ReadFiles returns the files whose settings are used, lowest precedence first except for imports.
func (r *Report) ReadFiles() (paths []string) {
	for _, f := range r.Files {
		if f.State == FileRead {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// extensions of files that are looked for, the preferred one first.
var extensions = [...]string{".yaml", ".yml"}

// search reads the files of a search, lowest precedence first.
func (l *loader) search(s Search) {
	if s.File != "" {
		l.report.Base = s.File
		l.addRequired(s.File)
		l.addOverlays(withoutExtension(s.File))
		return
	}
	used := ""
	for _, place := range s.Places {
		name := filepath.Join(place.Dir, place.Name)
		if used != "" {
			l.lookForUnused(name, used)
			continue
		}
		used = l.addPlace(name)
	}
	l.report.Base = used
}

// addPlace reads the files of a place, and returns the first of them, or "" if there is none.
func (l *loader) addPlace(name string) string {
	first := l.addPreferred(name)
	for _, path := range l.addOverlays(name) {
		if first == "" {
			first = path
		}
	}
	return first
}

// addOverlays reads the overlays of all active profiles, and returns their paths.
func (l *loader) addOverlays(name string) (paths []string) {
	for _, profile := range l.profiles {
		if path := l.addPreferred(name + "-" + profile); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// addPreferred reads the first file of a name that has content, and returns its path, or "".
// A file that cannot be read counts, because its settings are missing.
func (l *loader) addPreferred(name string) (used string) {
	for _, extension := range extensions {
		path := name + extension
		if used != "" {
			l.noteUnused(path, used)
			continue
		}
		f := l.file(path)
		switch f.state {
		case FileUnreadable:
			l.report.Add(Position{File: path}, "", "%s", f.err)
			used = path
		case FileRead:
			l.addFile(f)
			used = path
		}
	}
	return used
}

// addRequired reads a file that must exist.
func (l *loader) addRequired(path string) {
	f := l.file(path)
	if f.err != nil {
		l.report.Add(Position{File: path}, "", "%s", f.err)
		return
	}
	l.addFile(f)
}

// lookForUnused adds a notice for each file of a place that is not used.
func (l *loader) lookForUnused(name, used string) {
	for _, extension := range extensions {
		l.noteUnused(name+extension, used)
	}
	for _, profile := range l.profiles {
		for _, extension := range extensions {
			l.noteUnused(name+"-"+profile+extension, used)
		}
	}
}

// noteUnused adds a notice if a file exists that is not used because another one is.
func (l *loader) noteUnused(path, used string) {
	if _, isKnown := l.files[path]; isKnown {
		return
	}
	f := &file{path: path}
	l.files[path] = f
	data, err := l.read(path)
	switch {
	case isNotFound(err):
	case err != nil:
		f.state = FileUnreadable
	case isBlank(data):
		f.state = FileEmpty
	default:
		f.state = FileUnused
		l.report.Notices = append(l.report.Notices, printable(path)+" is not read, because "+printable(used)+" is used")
	}
	l.report.Files = append(l.report.Files, File{path, f.state})
}

func withoutExtension(path string) string {
	for _, extension := range extensions {
		if name, found := strings.CutSuffix(path, extension); found {
			return name
		}
	}
	return path
}
