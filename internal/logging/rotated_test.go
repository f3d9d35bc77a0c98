package logging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// TestMovedFileIsCreatedAgain removes, renames and truncates the file while lines are written, as people and
// logrotate do.
func TestMovedFileIsCreatedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "agent.log")
	rotated := newRotatedFile(&lumberjack.Logger{Filename: path})
	t.Cleanup(rotated.close)
	stderr := &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(&fileWriter{path: path, file: rotated, stderr: stderr}, nil))
	for step, move := range []func() error{
		func() error { return nil },
		func() error { return os.Remove(path) },
		func() error { return os.Rename(path, path+".1") },
		func() error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
		func() error { return errors.Join(os.Rename(path, path+".2"), os.WriteFile(path, nil, 0o600)) }, // logrotate's create
		func() error { return os.Truncate(path, 0) },                                                    // its copytruncate
		func() error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		if err := move(); err != nil {
			t.Fatal(err)
		}
		rotated.checked = time.Time{} // as if a second had passed
		log.Info("line", "step", step)
		log.Info("line", "step", step)
		got := readFile(t, path)
		if strings.Count(got, fmt.Sprintf("step=%d", step)) != 2 || strings.Contains(got, "\x00") {
			t.Errorf("step %d: got %q, want two lines", step, got)
		}
	}
	if stderr.Len() > 0 {
		t.Errorf("got %q on standard error", stderr)
	}
}

// TestRemovedFileLosesNoLine removes the file between two lines of the same second.
func TestRemovedFileLosesNoLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	log, _, stderr := open(t, File{Path: path})
	log.Info("first")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	log.Info("second")
	if got := readFile(t, path); !strings.Contains(got, "msg=second") || stderr.Len() > 0 {
		t.Errorf("got %q, and %q on standard error", got, stderr)
	}
}

// TestQuietProgramKeepsItsFile checks that the file is created again although nothing is logged, and that
// SIGHUP opens it anew.
func TestQuietProgramKeepsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	synctest.Test(t, func(t *testing.T) {
		f := &fileWriter{path: path, file: newRotatedFile(&lumberjack.Logger{Filename: path}), stderr: &bytes.Buffer{}}
		ctx, cancel := context.WithCancel(t.Context())
		hangups := make(chan os.Signal)
		var keeping sync.WaitGroup
		keeping.Go(func() { f.keep(ctx, hangups) })
		_, _ = f.Write([]byte("first\n"))
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * checkInterval)
		synctest.Wait()
		if got := readFile(t, path) + readFile(t, path+".1"); got != "first\n" {
			t.Errorf("after a rename: got %q", got)
		}
		if err := os.Rename(path, path+".2"); err != nil {
			t.Fatal(err)
		}
		hangups <- os.Interrupt // any value: keep is told about SIGHUP only
		synctest.Wait()
		_, _ = f.Write([]byte("second\n"))
		if got := readFile(t, path); got != "second\n" {
			t.Errorf("after SIGHUP: got %q", got)
		}
		cancel()
		keeping.Wait()
	})
}

// TestDirectoryThatIsGone takes the directory away, so that it cannot be created again, and gives it back.
func TestDirectoryThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(dir, "agent.log")
	stderr := &bytes.Buffer{}
	f := &fileWriter{path: path, file: newRotatedFile(&lumberjack.Logger{Filename: path}), stderr: stderr}
	_, _ = f.Write([]byte("first\n"))
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.reopen(false)
	}
	if got := stderr.String(); strings.Count(got, "cannot write the log file "+path) != 1 {
		t.Errorf("got %q on standard error before the next line, want one report", got)
	}
	_, _ = f.Write([]byte("second\n"))
	_, _ = f.Write([]byte("third\n"))
	if got := stderr.String(); strings.Count(got, "cannot write the log file "+path) != 1 || !strings.HasSuffix(got, "\nsecond\nthird\n") {
		t.Errorf("got %q on standard error, want one report and the lines", got)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	f.reopen(false)
	_, _ = f.Write([]byte("fourth\n"))
	if got := readFile(t, path); got != "fourth\n" || !strings.Contains(stderr.String(), "can be written again") {
		t.Errorf("got %q, and %q on standard error", got, stderr)
	}
}

// TestFileThatOpensAndCannotBeWritten checks that a file counts as writable only when a line was written: on a full disk it
// can be opened, and a program that says each second that all is well would say it for ever.
func TestFileThatOpensAndCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	rotated, stderr := newRotatedFile(&lumberjack.Logger{Filename: path}), &bytes.Buffer{}
	t.Cleanup(rotated.close)
	f := &fileWriter{path: path, file: rotated, stderr: stderr}
	_, _ = f.Write([]byte("first\n"))
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	rotated.file.Close()
	rotated.file = readOnly
	for range 3 {
		_, _ = f.Write([]byte("second\n"))
		f.reopen(false)
	}
	if got := stderr.String(); strings.Count(got, "cannot write") != 1 || strings.Contains(got, "can be written again") || strings.Count(got, "second\n") != 3 {
		t.Errorf("got %q on standard error, want one report and the lines", got)
	}
	f.reopen(true)
	_, _ = f.Write([]byte("third\n"))
	if got := readFile(t, path); got != "first\nthird\n" || !strings.HasSuffix(stderr.String(), "can be written again\n") {
		t.Errorf("got the file %q, and %q on standard error", got, stderr)
	}
}

// BenchmarkLine measures a line in a file.
func BenchmarkLine(b *testing.B) {
	log, err := New(Config{File: File{Path: filepath.Join(b.TempDir(), "agent.log")}}, &bytes.Buffer{}, &bytes.Buffer{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		log.Info("operation ended", "account", "prod", "operation", "01FRKFMF52JBWB3ZW1K3676P8H")
	}
}
