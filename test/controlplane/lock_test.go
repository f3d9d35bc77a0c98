//go:build unix

package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
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

// TestClaimWhileOthersSweep claims directories while others look for stale ones all the time.
func TestClaimWhileOthersSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var sweepers sync.WaitGroup
	defer sweepers.Wait()
	defer cancel()
	for range 2 {
		sweepers.Go(func() {
			for ctx.Err() == nil {
				removeStaleDirs()
			}
		})
	}
	for range 200 {
		dir, lock, err := claimDir("")
		must(t, err)
		if !exists(dir) {
			t.Error("a claimed directory was swept")
		}
		must(t, os.RemoveAll(dir))
		lock.release()
	}
}
