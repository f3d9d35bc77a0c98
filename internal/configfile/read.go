package configfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxFileBytes limits the size of a file. A ConfigMap is at most 1 MiB, so a larger file is not a
// configuration.
const maxFileBytes = 8 << 20

// errNotFound is returned for a file that does not exist.
var errNotFound = fmt.Errorf("open the file: %w", syscall.ENOENT)

// readFile returns a file's bytes, or errNotFound. Its errors do not contain the path, because the
// position already does.
func readFile(path string) ([]byte, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
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

// checkFile looks at a file before it is opened. A file that exists and cannot be read is an error,
// because ignoring it would lose its settings. So is a symbolic link to nowhere: that is what a
// volume whose content is missing looks like.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return errors.New("open the file: it is a symbolic link to a file that does not exist")
		}
		return errNotFound
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrPermission) && isHidden(filepath.Dir(path)):
		return errNotFound
	case err != nil:
		return fmt.Errorf("open the file: %w", withoutPath(err))
	case !canBeRead(path, info.Mode()):
		return errors.New("open the file: it is not a regular file")
	}
	return nil
}

// canBeRead rejects what has no end, and pipes, which would block. Those of a shell, which end, are
// below /dev: --config <(command).
func canBeRead(path string, mode fs.FileMode) bool {
	if mode&fs.ModeNamedPipe != 0 {
		return strings.HasPrefix(path, "/dev/")
	}
	return mode&(fs.ModeDevice|fs.ModeSocket) == 0
}

// isHidden reports whether a directory is below one that this user must not search, such as /root.
// Nothing in it was meant for this user.
func isHidden(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrPermission)
}

// withoutPath removes the operation and the path from an error of package os.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
