package contexts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
)

// File is the content of a file of contexts.
type File struct {
	CurrentContext string    `json:"currentContext,omitempty"`
	Contexts       []Context `json:"contexts"`

	Path string `json:"-"`
	// IsMissing is set if there is no such file.
	IsMissing bool `json:"-"`
}

// maxFileBytes is much more than thousands of contexts take.
const maxFileBytes = 1 << 20

// Load reads the file at a path. A missing file has no contexts.
func Load(path string) (*File, error) {
	opened, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{Path: path, IsMissing: true}, nil
	}
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the contexts: %w", err)
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the contexts: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(opened, maxFileBytes+1))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the contexts: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, vedette.Errorf(vedette.Invalid, "%s is larger than %d KiB, so it is not a file of contexts", path, maxFileBytes>>10)
	}
	f, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	return f, f.checkWriters(info)
}

// checkWriters rejects a file that others may change if it has commands, which would run as
// this user.
func (f *File) checkWriters(info os.FileInfo) error {
	for _, c := range f.Contexts {
		if len(c.TokenCommand) > 0 && canOthersWrite(info) {
			return vedette.Errorf(vedette.Denied, "%s has commands, and other users may change it: run chmod 600 %s", f.Path, f.Path)
		}
	}
	return nil
}

// parse decodes a file. Its errors name the file, and the line if the YAML is not valid.
func parse(path string, data []byte) (*File, error) {
	f := &File{}
	if err := yaml.UnmarshalStrict(data, f); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "%s is not a valid file of contexts: %s", path, describe(err))
	}
	f.Path = path
	seen := map[string]bool{}
	for i := range f.Contexts {
		c := &f.Contexts[i]
		if err := c.Validate(); err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "%s: %w", path, err)
		}
		if seen[c.Name] {
			return nil, vedette.Errorf(vedette.Invalid, "%s has two contexts with the name %q: rename one of them", path, c.Name)
		}
		seen[c.Name] = true
		c.ResolveFiles(filepath.Dir(path))
	}
	return f, nil
}

var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// describe returns a decoder's error without its path through the decoders, and with the nearest
// key if a key is unknown.
func describe(err error) string {
	text := err.Error()
	if match := unknownField.FindStringSubmatch(text); match != nil {
		return fmt.Sprintf("the key %q is unknown%s", match[1], nearest.Hint(match[1], keys()))
	}
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// keys returns all keys of a file.
func keys() []string {
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[File](), reflect.TypeFor[Context]()} {
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
				names = append(names, name)
			}
		}
	}
	return names
}

// Save writes the file with mode 0600. Readers see the old content or the new one, and never a
// part.
func (f *File) Save() error {
	if f.Contexts == nil {
		f.Contexts = []Context{}
	}
	data, err := yaml.Marshal(f)
	if err == nil {
		err = writeFile(f.Path, data)
	}
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "write the contexts to %s: %w", f.Path, err)
	}
	return nil
}

// writeFile replaces a file. If the path is a symbolic link, the link stays, because the file may be
// in a repository of dotfiles.
//
//nolint:wrapcheck // Save names the file
func writeFile(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".config-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // it does not exist any more if it was renamed
	_, err = temporary.Write(data)
	if err := errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
