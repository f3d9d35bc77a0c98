package logging

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// The names of File that are not paths.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Upper limits of File. A file of more days would have a date that time.Duration cannot express, and
// lumberjack would then remove all files.
const (
	MaxFileSizeMB = 1 << 20
	MaxFileDays   = 36_500
	MaxFileCount  = 1 << 20
)

// File is where lines go, and when a file is rotated. The zero value is standard output.
type File struct {
	Path       string // stdout, stderr, or the path of a file; "" means stdout
	MultiWrite bool   // lines go to standard output in addition to a file
	MaxSizeMB  int    // when a new file is started; 0 means 100
	MaxAgeDays int    // how long old files are kept; 0 means for ever
	MaxBackups int    // how many old files are kept; 0 means all
	UTC        bool   // the names of old files contain UTC instead of local time
	Compress   bool   // old files are compressed by gzip
}

// writer returns the writer of lines. It never fails, because the log must not stop the program: a
// file that cannot be written is reported once, and its lines go to standard error.
func (f File) writer(stdout, stderr io.Writer) io.Writer {
	switch strings.ToLower(f.Path) {
	case Stdout, "":
		return stdout
	case Stderr:
		return stderr
	}
	w := &fileWriter{path: f.Path, file: f.open(), stderr: stderr}
	if f.MultiWrite {
		w.stdout = stdout
	}
	return w
}

// open returns the rotated file. A device or a pipe is not rotated, because rotation would rename
// it.
func (f File) open() io.Writer {
	if info, err := os.Stat(f.Path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return &device{path: f.Path}
	}
	return &rotatedFile{file: &lumberjack.Logger{Filename: f.Path, MaxSize: f.MaxSizeMB, MaxAge: f.MaxAgeDays, MaxBackups: f.MaxBackups,
		LocalTime: !f.UTC, Compress: f.Compress}}
}

// rotatedFile is a file that is rotated, and that others may remove or rename: the lines that follow are
// written to a new file of that name, and not to one that nobody can read anymore.
type rotatedFile struct {
	file    *lumberjack.Logger
	open    os.FileInfo // nil until a line was written to it
	checked time.Time
}

// checkInterval is how often to look for the file, because that costs as much as a line.
const checkInterval = time.Second

func (r *rotatedFile) Write(line []byte) (int, error) {
	if now := time.Now(); now.Sub(r.checked) >= checkInterval {
		r.checked = now
		r.reopenIfMoved()
	}
	n, err := r.file.Write(line)
	if r.open == nil && err == nil {
		r.open, _ = os.Stat(r.file.Filename)
	}
	return n, err
}

// reopenIfMoved closes the file if its name is that of another one, which may be the next after a
// rotation. The next line opens that, or creates it.
func (r *rotatedFile) reopenIfMoved() {
	now, err := os.Stat(r.file.Filename)
	if r.open != nil && (err != nil || !os.SameFile(r.open, now)) {
		_ = r.file.Close() // it is lost anyway
		r.open = nil
	}
}

// device is a file that is not rotated, such as /dev/stderr.
type device struct {
	path string
	file *os.File // nil before the first line

	pausedUntil time.Time
}

func (d *device) Write(line []byte) (int, error) {
	if d.file == nil {
		var err error
		d.file, err = os.OpenFile(d.path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0) // a pipe may have no reader
		if err != nil {
			return 0, fmt.Errorf("open the device: %w", err)
		}
	}
	now := time.Now()
	if now.Before(d.pausedUntil) {
		return 0, errNotRead
	}
	_ = d.file.SetWriteDeadline(now.Add(deviceTimeout)) // of pipes; others have none
	n, err := d.file.Write(line)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		d.pausedUntil, err = time.Now().Add(devicePause), errNotRead
	}
	return n, err //nolint:wrapcheck // fileWriter names the file
}

const (
	// deviceTimeout is how long the reader of a pipe may keep the program waiting.
	deviceTimeout = time.Second
	// devicePause is how long nothing is written to a pipe that was not read.
	devicePause = 10 * time.Second
)

var errNotRead = errors.New("nobody reads the pipe")

// fileWriter writes lines to a file, and to standard error while the file cannot be written. It is
// not safe for concurrent use; slog's handlers write one line at a time.
type fileWriter struct {
	path    string
	file    io.Writer
	stdout  io.Writer // gets all lines too; may be nil
	stderr  io.Writer
	failing bool
	torn    bool // the last line of the file is incomplete
}

// Write writes one line. It returns no error, because slog ignores errors.
func (f *fileWriter) Write(line []byte) (int, error) {
	if f.stdout != nil {
		_, _ = f.stdout.Write(line)
	}
	err := f.writeFile(line)
	switch {
	case err != nil && !f.failing:
		fmt.Fprintf(f.stderr, "cannot write the log file %s: %v: lines go to standard error until it can be written; "+
			"free space on its disk, or let this program write to its directory\n", f.path, err)
	case err == nil && f.failing:
		fmt.Fprintf(f.stderr, "the log file %s can be written again\n", f.path)
	}
	f.failing = err != nil
	if f.failing && f.stdout == nil {
		_, _ = f.stderr.Write(line) // as a whole, because nobody can read a half
	}
	return len(line), nil
}

// writeFile writes a line to the file, on a line of its own if a full disk has cut the one before.
func (f *fileWriter) writeFile(line []byte) error {
	if f.torn {
		if _, err := f.file.Write([]byte("\n")); err != nil {
			return err
		}
	}
	n, err := f.file.Write(line)
	f.torn = err != nil && n > 0
	return err
}
