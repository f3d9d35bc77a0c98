// Package tempdir has temporary directories that are removed even if their process was killed: the next
// process removes those whose lock nobody holds.
package tempdir

import (
	"errors"
	"fmt"
	"os"
)

// lockName is the file in a directory whose lock shows that the process lives. Process ids would not,
// because containers that share a directory may have the same.
const lockName = ".lock"

// Dir is a directory that belongs to this process.
type Dir struct {
	Path string
	lock *os.File // nil on systems without locks
}

// Make creates a directory, with mode 0700, in parent, or in the system's directory for temporary files if
// parent is empty. The pattern is that of os.MkdirTemp. It tries again if another process that starts at
// the same time takes the directory for abandoned, before the lock is held.
func Make(parent, pattern string) (*Dir, error) {
	var err error
	for range 3 {
		var path string
		path, err = os.MkdirTemp(parent, pattern)
		if err != nil {
			return nil, fmt.Errorf("create it: %w", err)
		}
		lock, lockErr := lockDir(path)
		if lockErr == nil {
			return &Dir{path, lock}, nil
		}
		err = errors.Join(lockErr, os.RemoveAll(path))
	}
	return nil, err
}

// Remove removes the directory with all that is in it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.Path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
