package logging

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// The names of File that are not paths.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// File is where lines go, and when a file is rotated. The zero value is standard output. lumberjack removes all files if
// time.Duration cannot express MaxAgeDays.
type File struct {
	// Where to log: stdout, stderr, or the path of a file.
	Path string `config:"file" default:"stdout"`
	// Log to standard output in addition to the file.
	MultiWrite bool `config:"multiWrite" default:"false"`
	// Size at which a new file is started, in MB; 0 for 100. The old file keeps its name with a date.
	MaxSizeMB int `config:"maxSizeMb" default:"1" minimum:"0" maximum:"1048576"`
	// Time for which old files are kept, in days; 0 for ever.
	MaxAgeDays int `config:"maxAgeDays" default:"10" minimum:"0" maximum:"36500"`
	// Number of old files that are kept; 0 for all.
	MaxBackups int `config:"maxBackups" default:"10" minimum:"0" maximum:"1048576"`
	// Use local time in log lines and in the names of old files, instead of UTC.
	LocalTime bool `config:"localTime" default:"true"`
	// Compress old files with gzip.
	Compress bool `config:"compress" default:"false"`
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
	return newRotatedFile(&lumberjack.Logger{Filename: f.Path, MaxSize: f.MaxSizeMB, MaxAge: f.MaxAgeDays, MaxBackups: f.MaxBackups,
		LocalTime: f.LocalTime, Compress: f.Compress})
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

// fileWriter writes lines to a file, and to standard error while the file cannot be written.
type fileWriter struct {
	mu      sync.Mutex // slog's handlers write one line at a time, but checks come from elsewhere
	path    string
	file    io.Writer
	stdout  io.Writer // gets all lines too; may be nil
	stderr  io.Writer
	failing bool
	torn    bool // the last line of the file is incomplete
}

// Write writes one line. It returns no error, because slog ignores errors.
func (f *fileWriter) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stdout != nil {
		_, _ = f.stdout.Write(line)
	}
	f.report(f.writeFile(line))
	if f.failing && f.stdout == nil {
		_, _ = f.stderr.Write(line) // as a whole, because nobody can read a half
	}
	return len(line), nil
}

// report says once on standard error that the file cannot be written, and once that it can be again.
func (f *fileWriter) report(err error) {
	switch {
	case err != nil && !f.failing:
		fmt.Fprintf(f.stderr, "cannot write the log file %s: %v: lines go to standard error until it can be written; "+
			"free space on its disk, or let this program write to its directory\n", f.path, err)
	case err == nil && f.failing:
		fmt.Fprintf(f.stderr, "the log file %s can be written again\n", f.path)
	}
	f.failing = err != nil
}

// reopen creates the file again if it was removed or renamed, so that it is there before the next line. With
// force it is opened again in any case. A file that can be opened may still be on a full disk, so only a line that
// was written ends a failure.
func (f *fileWriter) reopen(force bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rotated, ok := f.file.(*rotatedFile); ok {
		if err := rotated.reopen(force); err != nil {
			f.report(err)
		}
	}
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
