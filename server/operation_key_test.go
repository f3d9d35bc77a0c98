package server

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestOperationKeyIsKept checks that a server has the same key after a restart, and that nobody else can read it.
func TestOperationKeyIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), operationKeyFile)
	if err := os.WriteFile(path, []byte("cut"), 0o600); err != nil { // by a server that was killed
		t.Fatal(err)
	}
	first, err := readOperationKey(path)
	if err != nil || len(first) < operationKeyBytes {
		t.Fatalf("got %q, error %v, want a key", first, err)
	}
	second, err := readOperationKey(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || !bytes.Equal(first, second) || info.Mode().Perm() != 0o600 {
		t.Errorf("got %q after %q, mode %v, errors %v and %v, want the same key", second, first, info.Mode(), err, statErr)
	}
	if key, err := readOperationKey(filepath.Join(path, "none")); err == nil || key != nil {
		t.Errorf("without a directory: got %q, error %v, want an error", key, err)
	}
}
