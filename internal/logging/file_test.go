package logging

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// open returns a logger that writes to a file, and what it prints.
func open(t *testing.T, f File) (log *slog.Logger, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	log, err := New(Config{File: f}, stdout, stderr)
	if err != nil {
		t.Fatal(err)
	}
	return log, stdout, stderr
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLinesReachTheirDestination(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name                   string
		file                   File
		inOut, inErr, inTheLog bool
	}{
		{"the default", File{}, true, false, false},
		{"standard output", File{Path: "STDOUT", MultiWrite: true}, true, false, false},
		{"standard error", File{Path: "stderr"}, false, true, false},
		{"a file in a new directory", File{Path: filepath.Join(dir, "new", "agent.log")}, false, false, true},
		{"a file and standard output", File{Path: filepath.Join(dir, "both.log"), MultiWrite: true}, true, false, true},
	} {
		log, stdout, stderr := open(t, tt.file)
		log.Info("hello")
		if got := strings.Contains(stdout.String(), "msg=hello"); got != tt.inOut {
			t.Errorf("%s: got %q on standard output", tt.name, stdout)
		}
		if got := strings.Contains(stderr.String(), "msg=hello"); got != tt.inErr {
			t.Errorf("%s: got %q on standard error", tt.name, stderr)
		}
		if tt.inTheLog && !strings.Contains(readFile(t, tt.file.Path), "msg=hello") {
			t.Errorf("%s: the file lacks the line", tt.name)
		}
	}
}

// TestRotatedFilesAreBoundedAndCompressed fills more files than are kept, and checks their number, their size and that they are
// compressed.
func TestRotatedFilesAreBoundedAndCompressed(t *testing.T) {
	dir := t.TempDir()
	log, _, stderr := open(t, File{Path: filepath.Join(dir, "agent.log"), MaxSizeMB: 1, MaxBackups: 2, Compress: true})
	text := strings.Repeat("x", 300<<10)
	for range 16 { // three lines fit into a file
		log.Info("line " + text) //nolint:sloglint // a value of an attribute would be cut
	}
	await(t, "two compressed files", func() bool {
		old, err := filepath.Glob(filepath.Join(dir, "agent-*"))
		if err != nil {
			t.Fatal(err)
		}
		compressed := 0
		for _, path := range old {
			if strings.HasSuffix(path, ".log.gz") {
				compressed++
			}
		}
		return len(old) == 2 && compressed == 2
	})
	old, _ := filepath.Glob(filepath.Join(dir, "agent-*"))
	packed, err := os.Open(old[0])
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(unpacked); err != nil || bytes.Count(content, []byte(text)) != 3 || len(content) > 1<<20 {
		t.Errorf("got %d bytes with %d lines, %v, want 3 lines in less than 1 MiB", len(content), bytes.Count(content, []byte(text)), err)
	}
	if stderr.Len() > 0 {
		t.Errorf("got %q on standard error", stderr)
	}
}

// smallDisk accepts some bytes and is full then.
type smallDisk struct {
	bytes.Buffer
	room int
}

func (d *smallDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	d.Buffer.Write(b[:n])
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestFullDiskTearsOneLine fills a disk within a line. The line is complete on standard error, and the
// next line of the file, when there is room again, is not joined to the half.
func TestFullDiskTearsOneLine(t *testing.T) {
	disk, stderr := &smallDisk{room: 8}, &bytes.Buffer{}
	w := &fileWriter{path: "agent.log", file: disk, stderr: stderr}
	for i, line := range []string{"first\n", "second\n", "third\n", "fourth\n", "fifth\n"} {
		if i == 3 {
			disk.room = 100
		}
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
	if got := disk.String(); got != "first\nse\nfourth\nfifth\n" {
		t.Errorf("got the file %q", got)
	}
	if got := stderr.String(); !strings.Contains(got, "\nsecond\nthird\n") {
		t.Errorf("got %q on standard error, want both lines", got)
	}
}

// await polls until done returns true: old files are compressed in the background.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("timeout waiting for %s", what)
		case <-tick.C:
		}
	}
}

// TestUnwritableFileIsReportedOnce makes a file unwritable, by a directory in its place, and writable
// again. No line is lost.
func TestUnwritableFileIsReportedOnce(t *testing.T) {
	for _, multiWrite := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "agent.log")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "occupied"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w := &fileWriter{path: path, file: &device{path: path}, stderr: &bytes.Buffer{}}
		stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
		w.stderr = stderr
		if multiWrite {
			w.stdout = stdout
		}
		log := slog.New(slog.NewTextHandler(w, nil))
		log.Info("first")
		log.Info("second")
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		log.Info("third")
		got := stderr.String()
		if strings.Count(got, "cannot write the log file "+path) != 1 || strings.Count(got, "can be written again") != 1 {
			t.Errorf("multiWrite %v: got %q on standard error, want one report of the failure and one of its end", multiWrite, got)
		}
		all := got + stdout.String() + readFile(t, path)
		for _, line := range []string{"msg=first", "msg=second", "msg=third"} {
			if !strings.Contains(all, line) {
				t.Errorf("multiWrite %v: %s is lost in %q", multiWrite, line, all)
			}
		}
		if multiWrite && strings.Contains(got, "msg=") {
			t.Errorf("got lines on standard error and standard output: %q", got)
		}
	}
}

// TestDirectoryThatCannotBeWritten logs to a file whose directory cannot be created.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(parent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log, _, stderr := open(t, File{Path: filepath.Join(parent, "agent.log"), MaxSizeMB: 1})
	log.Info("first")
	log.Info("second")
	if got := stderr.String(); strings.Count(got, "cannot write the log file") != 1 || !strings.Contains(got, "msg=second") {
		t.Errorf("got %q, want one report and all lines", got)
	}
}
