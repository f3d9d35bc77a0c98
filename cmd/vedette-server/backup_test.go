package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/config"
)

// TestBackupsAreNotSentToDevices checks that a terminal gets no database, and that none is read from one.
func TestBackupsAreNotSentToDevices(t *testing.T) {
	device, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	stdin, stdout := os.Stdin, os.Stdout
	t.Cleanup(func() { os.Stdin, os.Stdout = stdin, stdout })
	os.Stdin, os.Stdout = device, device
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "vedette-server.yml")
	if err := os.WriteFile(file, []byte("dataDir: "+dir), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func() error{
		"backup":  func() error { return runBackup(t.Context(), cfg, []string{"-"}, io.Discard, io.Discard) },
		"restore": func() error { return runRestore(t.Context(), cfg, []string{"-"}, io.Discard, io.Discard) },
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "is a terminal or another device") {
			t.Errorf("%s: got %v, want an error that says what to do", name, err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("got %v, want no directory: nothing was written", err)
	}
}
