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
	"syscall"

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

// LoadFile is Load of the file at Path.
func LoadFile() (*File, error) {
	path, err := Path()
	if err != nil {
		return nil, err
	}
	return Load(path)
}

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

// Update changes the file at a path: it reads the file, calls change, and writes the result. Other
// commands that change the file wait meanwhile, so that no change is lost. Nothing is written if
// change returns an error. Because others wait, change must not wait for anything.
func Update(path string, change func(*File) error) error {
	target, err := resolveLinks(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(target), 0o700)
	}
	if err != nil {
		return writeError(path, err)
	}
	lock, err := acquireLock(filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".lock"))
	if err != nil {
		return writeError(path, err)
	}
	defer lock.Close()
	f, err := Load(path)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	data, err := f.encode()
	if err == nil {
		err = replaceFile(target, data)
	}
	if err != nil {
		return writeError(path, err)
	}
	return nil
}

func writeError(path string, err error) error {
	hint := ""
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		hint = fmt.Sprintf(": make its directory writable, or set %s to the path of another file", PathVariable)
	}
	return vedette.Errorf(vedette.Invalid, "write the contexts to %s: %w%s", path, err, hint)
}

func (f *File) encode() ([]byte, error) {
	if f.Contexts == nil {
		f.Contexts = []Context{}
	}
	content, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode the contexts: %w", err)
	}
	return content, nil
}

// maxLinks is how many symbolic links in a row are followed, as in Linux.
const maxLinks = 40

// resolveLinks returns the file that a path means. If the path is a symbolic link, the link stays,
// because the file may be in a repository of dotfiles. The file may be missing.
func resolveLinks(path string) (string, error) {
	for range maxLinks {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // it is missing, and not a link
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", errors.New("it is a symbolic link to itself, or one of too many")
}

// replaceFile replaces a file by one with mode 0600. Readers see the old content or the new one, and
// never a part, also after a crash. The caller holds the lock, so a temporary file that exists was
// left by a command that was killed.
//
//nolint:wrapcheck // writeError names the file
func replaceFile(path string, data []byte) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temporary) // it does not exist any more if it was renamed
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
