//go:build unix

package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestLockOutlivesItsReferences checks that the garbage collector does not end a lock: a plane that
// nobody refers to still runs.
func TestLockOutlivesItsReferences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	func() {
		_, err := tryLock(path, os.O_CREATE)
		must(t, err)
	}()
	for range 20 {
		runtime.GC()
		runtime.Gosched() // to what closes files
		if lock, err := tryLock(path, 0); !errors.Is(err, errLocked) {
			lock.release()
			t.Fatalf("got error %v, want that the lock is held", err)
		}
	}
}
