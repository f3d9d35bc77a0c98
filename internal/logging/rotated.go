package logging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// rotatedFile is a file that is rotated, and that others may remove, rename or truncate: the lines that
// follow are written to a new file of that name, and not to one that nobody can read anymore. It is not safe
// for concurrent use.
//
// lumberjack renames and removes old files. It does not write the lines, because it opens new files without
// O_APPEND: after a truncation by others, as logrotate's copytruncate does, the next line would follow a hole.
type rotatedFile struct {
	old     *lumberjack.Logger
	file    *os.File    // nil if it is not open
	info    os.FileInfo // of file
	size    int64       // of file; larger than it is after a truncation, until the next check
	checked time.Time
}

func newRotatedFile(old *lumberjack.Logger) *rotatedFile { return &rotatedFile{old: old} }

// checkInterval is how often to look whether the name is still that of the open file.
const checkInterval = time.Second

const defaultMaxSizeMB = 100 // lumberjack's

// Write writes a line. If the file has been removed meanwhile, the line is written again to a new one.
func (r *rotatedFile) Write(line []byte) (int, error) {
	if now := time.Now(); now.Sub(r.checked) >= checkInterval {
		if err := r.reopen(false); err != nil {
			return 0, err
		}
	}
	n, err := r.write(line)
	if err == nil && isRemoved(r.file) {
		r.close()
		return r.write(line)
	}
	return n, err
}

func (r *rotatedFile) write(line []byte) (int, error) {
	if err := r.open(); err != nil {
		return 0, err
	}
	if r.size > 0 && r.size+int64(len(line)) > r.maxBytes() {
		if err := r.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := r.file.Write(line)
	r.size += int64(n)
	return n, err
}

// reopen opens the file again if its name is that of another one, which may be the next after a rotation by
// others, or if force is set. It opens a file that is not open, so that a removed one is there again
// although nothing is written.
func (r *rotatedFile) reopen(force bool) error {
	r.checked = time.Now()
	now, err := os.Stat(r.old.Filename)
	switch {
	case r.file == nil:
	case force, err != nil, !os.SameFile(r.info, now):
		r.close()
	default:
		r.size = now.Size() // it may have been truncated
	}
	return r.open()
}

func (r *rotatedFile) open() error {
	if r.file != nil {
		return nil
	}
	file, err := openAppending(r.old.Filename)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close() // the first error counts
		return fmt.Errorf("look at the open file: %w", err)
	}
	if !info.Mode().IsRegular() {
		_ = file.Close()
		return errNotRegular
	}
	r.file = file
	r.info = info
	r.size = info.Size()
	return nil
}

// errNotRegular is about what has taken the place of the file.
var errNotRegular = errors.New("it is not a file any more, but a pipe or a device: remove it, or restart this program to write to it")

// logFileMode lets nobody else read the file: lines name accounts and users.
const logFileMode = 0o600

// openAppending opens a file, and creates it and its directory if they do not exist. It does not wait for the reader of a
// pipe that somebody has put there, because all lines of the program would wait with it.
func openAppending(path string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND | syscall.O_NONBLOCK
	file, err := os.OpenFile(path, flags, logFileMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as lumberjack: others may list the directory
			return nil, fmt.Errorf("create the directory: %w", err)
		}
		file, err = os.OpenFile(path, flags, logFileMode)
	}
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	return file, nil
}

// rotate renames the file, begins a new one, and lets lumberjack remove and compress old ones.
func (r *rotatedFile) rotate() error {
	r.close()
	err := r.old.Rotate()
	if err := errors.Join(err, r.old.Close()); err != nil {
		return fmt.Errorf("begin a new file: %w", err)
	}
	return r.open()
}

func (r *rotatedFile) close() {
	if r.file != nil {
		_ = r.file.Close() // each line was written by one call, so that nothing is left to write
	}
	r.file = nil
	r.info = nil
	r.size = 0
}

func (r *rotatedFile) maxBytes() int64 {
	size := int64(r.old.MaxSize)
	if size <= 0 {
		size = defaultMaxSizeMB
	}
	return size << 20
}
