// Package configfile reads one YAML file into a struct and remembers where
// each setting stands.
//
// It works in layers, each a function on the result of the one before: bytes
// become a tree of nodes with positions (tree.go), old paths are moved to new
// ones (rename.go), and the tree is decoded into the struct (decode.go), where
// placeholders are filled in (placeholder.go) as values are needed. What a
// struct accepts is told by its field tags (schema.go). The environment comes
// last and wins (environ.go).
//
// All that is wrong with a file is reported together, each problem with its
// file, line, column and path, so that a caller can tell a problem inside of
// one list entry from a problem of the whole.
package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// maxFileBytes bounds what Load reads: a ConfigMap holds 1 MiB at most, so a
// file of more is not a configuration.
const maxFileBytes = 8 << 20

// Options say how a file is read. The zero value is usable.
type Options struct {
	// Env looks up an environment variable; nil means that there are none.
	Env func(string) (string, bool)
	// EnvPrefix, "VEDETTE_AGENT_", makes VEDETTE_AGENT_CLOUDDRIVER_GRPC set
	// clouddriver.grpc. Empty switches this off. Without a prefix of its own a
	// Service called "server" would set server.port by the variables that
	// Kubernetes injects.
	EnvPrefix string
	// Renames are applied in their order before decoding.
	Renames []Rename
}

func (o Options) lookup(name string) (string, bool) {
	if o.Env == nil {
		return "", false
	}
	return o.Env(name)
}

// Report is what was found out while reading a file.
type Report struct {
	Problems []*Problem

	settings map[string]setting  // each leaf that was set, by its path
	entries  map[string]Position // each entry of a list, by its path
}

// setting is where a leaf was set, by the file or by the environment.
type setting struct {
	at     Position
	unused bool
}

// Err joins all problems, or returns nil where there are none.
func (r *Report) Err() error {
	return Join(r.Problems)
}

// Join makes one error of several problems in the order of the file, nil of none.
func Join(problems []*Problem) error {
	problems = slices.SortedStableFunc(slices.Values(problems), byPosition)
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// Unused tells of each key that was set and has no effect, as
// "agent.yml:7:3: hub.auth.token", in the order of the file.
func (r *Report) Unused() []string {
	var paths []string
	for path, s := range r.settings {
		if s.unused {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(r.settings[a].at.compare(r.settings[b].at), cmp.Compare(a, b))
	})
	for i, path := range paths {
		paths[i] = fmt.Sprintf("%s: %s", r.settings[path].at, path)
	}
	return paths
}

// PositionOf returns where a setting or an entry of a list stands, or the zero Position
// where it wasn't given.
func (r *Report) PositionOf(path string) Position {
	if at, ok := r.entries[path]; ok {
		return at
	}
	return r.settings[path].at
}

// IsSet reports whether a path that holds no settings of its own was given.
func (r *Report) IsSet(path string) bool {
	_, ok := r.settings[path]
	return ok
}

// HasProblem reports whether there is a problem at a path or below it.
func (r *Report) HasProblem(path string) bool {
	return slices.ContainsFunc(r.Problems, func(p *Problem) bool { return p.IsWithin(path) })
}

// Add appends a problem that the caller found after decoding.
func (r *Report) Add(at Position, path, format string, args ...any) {
	r.Problems = append(r.Problems, &Problem{At: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Find returns the first of some paths below a root with a file that is not empty; ""
// where there is none. A file that is there and can't be read is an error: to go on
// without it would drop all that it says.
func Find(root string, paths []string) (string, error) {
	for _, p := range paths {
		path := filepath.Join(root, p)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for a configuration file: %w", err)
		}
		return path, nil
	}
	return "", nil
}

// LoadFirst loads the file at path or, if path is empty, the first of the default paths below
// root that Find returns. It returns the path of the file; if there is no file, the path is
// empty and the struct has its defaults.
func LoadFirst(root, path string, defaultPaths []string, o Options, into any) (string, *Report, error) {
	if path == "" {
		found, err := Find(root, defaultPaths)
		if err != nil {
			return "", nil, vedette.Errorf(vedette.Invalid, "%w", err)
		}
		path = found
	}
	if path == "" {
		return "", Parse("", nil, o, into), nil
	}
	return path, Load(path, o, into), nil
}

// Load reads the file at path into the struct that into points to, which first
// gets the defaults of its tags. It fills in what it can, whatever the report
// says, so that good entries of a list survive bad ones.
func Load(path string, o Options, into any) *Report {
	data, err := read(path)
	if err != nil {
		r := Parse(path, nil, o, into)
		r.Add(Position{File: path}, "", "%s", err)
		return r
	}
	return Parse(path, data, o, into)
}

// read returns a file's bytes. Its errors don't repeat the path.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", withoutPath(err))
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", withoutPath(err))
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("read the file: it is bigger than %d MiB", maxFileBytes>>20)
	}
	return data, nil
}

// withoutPath takes the deed and the path off an error of package os.
func withoutPath(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// Parse does what Load does, with bytes that were read already. The name stands
// for the file in positions.
func Parse(name string, data []byte, o Options, into any) *Report {
	r := &Report{settings: map[string]setting{}, entries: map[string]Position{}}
	root := parseTree(shortName(name), data, r)
	d := &decoder{report: r, options: o, original: root.clone()}
	for _, rename := range o.Renames {
		rename.apply(root)
	}
	target := reflect.ValueOf(into).Elem()
	setDefaults(target)
	d.decodeStruct(location{}, []*node{root}, target)
	if o.EnvPrefix != "" {
		d.applyEnvironment(target)
	}
	d.applyFallbackVariables(target)
	return r
}

// shortName keeps messages short: the folder is the same for all of them and
// stands in the log line that names the file.
func shortName(path string) string {
	return filepath.Base(strings.TrimSpace(path))
}
