package logging

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskDoesNotStopTheProgram logs to a device that is always full.
func TestFullDiskDoesNotStopTheProgram(t *testing.T) {
	const full = "/dev/full"
	log, _, stderr := open(t, File{Path: full, MaxSizeMB: 1})
	for range 100 {
		log.Info("hello")
	}
	if got := stderr.String(); strings.Count(got, "cannot write the log file") != 1 || strings.Count(got, "msg=hello") != 100 ||
		!strings.Contains(got, "no space left on device") {
		t.Errorf("got %.300q, want one report and all lines", got)
	}
	if info, err := os.Stat(full); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device was replaced: %v, %v", info, err)
	}
}

// TestPipesDoNotStopTheProgram logs to pipes that nobody reads: without a reader, and with one that has
// stopped.
func TestPipesDoNotStopTheProgram(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	log, _, stderr := open(t, File{Path: pipe})
	log.Info("first")
	if got := stderr.String(); !strings.Contains(got, "cannot write the log file") || !strings.Contains(got, "msg=first") {
		t.Errorf("without a reader: got %q, want a report and the line", got)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	stderr.Reset()
	log.Info("second")
	if got := stderr.String(); !strings.Contains(got, "can be written again") {
		t.Errorf("with a reader: got %q", got)
	}
	text := strings.Repeat("x", 1<<20) // more than a pipe holds
	stderr.Reset()
	for range 20 { // the reader keeps the program waiting once
		log.Info("third " + text) //nolint:sloglint // a value of an attribute would be cut
	}
	if got := stderr.String(); strings.Count(got, "nobody reads the pipe") != 1 || strings.Count(got, "msg=\"third "+text+"\"\n") != 20 {
		t.Errorf("with a reader that has stopped: got %d bytes on standard error, want one report and all lines", len(got))
	}
}

// TestPipeInPlaceOfTheFile puts a pipe where the log file was: lines go to standard error, with or without a reader of the
// pipe, and to a file as soon as there can be one.
func TestPipeInPlaceOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, _, stderr := open(t, File{Path: path})
	log.Info("first")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	log.Info("second")
	if got := stderr.String(); !strings.Contains(got, "cannot write the log file") || !strings.Contains(got, "msg=second") {
		t.Errorf("without a reader: got %q, want a report and the line", got)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	log.Info("third")
	if got := stderr.String(); !strings.Contains(got, "msg=third") {
		t.Errorf("with a reader: got %q, want the line", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	log.Info("fourth")
	if got, err := os.ReadFile(path); err != nil || !strings.Contains(string(got), "msg=fourth") {
		t.Errorf("without the pipe: got %q and error %v, want the line in a file", got, err)
	}
}
