//go:build unix

package keypair

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFilesThatCannotBeRead checks that what would be read for ever is not read: the handshakes of everybody would wait for it.
func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	pipe, large, loop := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), "/dev/zero"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "not a regular file", loop: "not a regular file", large: "maximum", dir: "is a directory"} {
		failed := make(chan error, 1)
		go func() {
			_, err := LoadCertPool(path)
			failed <- err
		}()
		select {
		case err := <-failed:
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", path, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is read for ever", path)
		}
	}
}
