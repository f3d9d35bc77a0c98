package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/vedette-io/vedette/internal/tempdir"
)

// files are the temporary files with secrets: each with mode 0600, in a directory of this process
// with mode 0700.
type files struct {
	mu      sync.Mutex
	dir     *tempdir.Dir      // created with the first file
	paths   map[string]string // by the text of the reference
	content map[string]string // by the text of the reference
	closed  bool              // by removeAll
}

// errClosed ends a refresh during which another configuration took effect. A file that it wrote would
// stay until the process ends.
var errClosed = errors.New("the configuration that refers to the secret is no longer in effect")

// write returns the path of the file of a reference, and writes it if its content has changed. The
// path stays the same, and the file is replaced as a whole, so that whoever watches it finds
// either content.
func (f *files) write(text, content string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return "", errClosed
	}
	if path := f.paths[text]; path != "" && f.content[text] == content && exists(path) {
		return path, nil
	}
	if err := f.createDir(); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(text))
	path := filepath.Join(f.dir.Path, hex.EncodeToString(sum[:8]))
	if err := replaceFile(path, content); err != nil {
		return "", fmt.Errorf("write the secret to a temporary file: %w", err)
	}
	f.paths[text], f.content[text] = path, content
	return path, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// dirPattern is the name of directories with secrets, in the system's temporary directory.
const dirPattern = "vedette-secrets-*"

// createDir creates the directory, and removes those of processes that were killed.
func (f *files) createDir() error {
	if f.dir != nil && exists(f.dir.Path) {
		return nil
	}
	RemoveAbandoned()
	dir, err := tempdir.Make("", dirPattern)
	if err != nil {
		return fmt.Errorf("create a directory for the secret's temporary file: %w: set TMPDIR to a directory that the program may write to", err)
	}
	f.dir = dir
	f.paths = map[string]string{}
	f.content = map[string]string{}
	return nil
}

// RemoveAbandoned removes the directories with secrets of processes that were killed.
func RemoveAbandoned() { tempdir.RemoveAbandoned("", dirPattern) }

// replaceFile writes a file with mode 0600 and gives it its name when it is complete.
func replaceFile(path, content string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-") // with mode 0600
	if err != nil {
		return fmt.Errorf("create it: %w", err)
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// removeOthers removes the files of all references but some.
func (f *files) removeOthers(used map[string]bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for text, path := range f.paths {
		if !used[text] {
			errs = append(errs, os.Remove(path))
			delete(f.paths, text)
			delete(f.content, text)
		}
	}
	return errors.Join(errs...)
}

// removeAll removes the directory with all files. None can be written afterwards.
func (f *files) removeAll() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.dir == nil {
		return nil
	}
	dir := f.dir
	f.dir = nil
	f.paths = nil
	f.content = nil
	if err := dir.Remove(); err != nil {
		return fmt.Errorf("remove the temporary files with secrets: %w", err)
	}
	return nil
}
