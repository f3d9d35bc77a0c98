// Package configfile reads a YAML file into a struct and remembers the position of each setting.
//
// It works in layers: the bytes are parsed into a tree of nodes with positions (tree.go), old paths
// are renamed (rename.go), and the tree is decoded into the struct (decode.go). Decoding expands
// placeholders (placeholder.go). Field tags define which keys a struct accepts (schema.go).
// Environment variables come last and override the file (environment.go).
//
// All problems of a file are reported together, each with file, line, column and path, because
// callers must distinguish a problem in one list entry, which they can skip, from a problem of the
// whole file.
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

// maxFileBytes limits the size of a file. A ConfigMap is at most 1 MiB, so a larger file is not a
// configuration.
const maxFileBytes = 8 << 20

// Options configures how a file is read. The zero value is usable.
type Options struct {
	// Env looks up an environment variable; nil means that there are none.
	Env func(string) (string, bool)
	// EnvPrefix is the prefix of environment variables that set keys. With "VEDETTE_AGENT_",
	// VEDETTE_AGENT_CLOUDDRIVER_GRPC sets clouddriver.grpc. If it is "", variables set no keys:
	// Kubernetes injects variables for each Service, so that a Service called "server" would set
	// server.port.
	EnvPrefix string
	// Renames are applied in order before decoding.
	Renames []Rename
	// Secrets returns what replaces a reference to a secret (encrypted:… or encryptedFile:…). Its error
	// names the reference. Nil means that references are rejected.
	Secrets func(reference string) (string, error)
}

func (o Options) lookup(name string) (string, bool) {
	if o.Env == nil {
		return "", false
	}
	return o.Env(name)
}

// Report holds the results of reading a file besides the settings.
type Report struct {
	Problems []*Problem

	settings map[string]setting  // settings with a value, by path
	entries  map[string]Position // entries of lists, by path
	secrets  secrets
}

// setting records where a setting was set, in the file or the environment.
type setting struct {
	at     Position
	unused bool
}

// Err returns all problems as one error, or nil.
func (r *Report) Err() error {
	return Join(r.Problems)
}

// Join returns several problems as one error in the order of the file, or nil if there are none.
func Join(problems []*Problem) error {
	problems = slices.SortedStableFunc(slices.Values(problems), byPosition)
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// Unused returns each key that is set and has no effect, as "agent.yml:7:3: hub.auth.token", in the
// order of the file.
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

// PositionOf returns the position of a setting or a list entry, or the zero Position if it is not
// set.
func (r *Report) PositionOf(path string) Position {
	if at, ok := r.entries[path]; ok {
		return at
	}
	return r.settings[path].at
}

// IsSet reports whether the setting at a path is set.
func (r *Report) IsSet(path string) bool {
	_, ok := r.settings[path]
	return ok
}

// HasProblem reports whether there is a problem at a path or below it.
func (r *Report) HasProblem(path string) bool {
	return slices.ContainsFunc(r.Problems, func(p *Problem) bool { return p.IsWithin(path) })
}

// Add adds a problem that the caller found after decoding.
func (r *Report) Add(at Position, path, format string, args ...any) {
	message := r.secrets.hide(fmt.Sprintf(format, args...))
	r.Problems = append(r.Problems, &Problem{At: at, Path: path, Message: message})
}

// Find returns the first of several paths below root whose file is not empty, or "" if there is
// none. A file that exists and cannot be read is an error, because ignoring it would lose its
// settings.
func Find(root string, paths []string) (string, error) {
	for _, p := range paths {
		path := filepath.Join(root, p)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("find the configuration file: %w", err)
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

// Load reads the file at path into the struct that into points to, after it set the defaults of the
// struct's tags. It decodes everything that it can even if there are problems, so that valid
// entries of a list are not lost.
func Load(path string, o Options, into any) *Report {
	data, err := read(path)
	if err != nil {
		r := Parse(path, nil, o, into)
		r.Add(Position{File: path}, "", "%s", err)
		return r
	}
	return Parse(path, data, o, into)
}

// read returns a file's bytes. Its errors do not contain the path, because the position already
// does.
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
		return nil, fmt.Errorf("read the file: it is larger than %d MiB", maxFileBytes>>20)
	}
	return data, nil
}

// withoutPath removes the operation and the path from an error of package os.
func withoutPath(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// Parse is like Load for data that was read already. Positions use name as the file.
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

// shortName returns the file name without the folder, to keep messages short. The log names the
// whole path once.
func shortName(path string) string {
	return filepath.Base(strings.TrimSpace(path))
}
