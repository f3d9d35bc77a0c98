package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFileWithTheSameTime checks that a file is read again which was written in place and has the size and the time that
// it had before, as copies do that keep times.
func TestFileWithTheSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	old := time.Now().Add(-time.Hour)
	var last fileStates
	for _, content := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		var changed []string
		if last, changed = last.take([]string{file}); len(changed) != 1 {
			t.Errorf("%q is not noticed", content)
		}
	}
}
