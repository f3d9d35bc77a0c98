//go:build unix

package secret

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is the file in a directory whose lock shows that the process lives. Process ids would not,
// because containers that share a directory may have the same.
const lockName = ".lock"

// lockDir locks a new directory until the file is closed or the process ends.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create a lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if !exists(file.Name()) {
		file.Close()
		return nil, fmt.Errorf("lock %s: another process has removed it", dir)
	}
	return file, nil
}

// RemoveAbandoned removes the directories with secrets of processes that were killed. Call it at
// start, because the process may have no such directory of its own. It leaves what it cannot lock or
// remove, such as directories of other users.
func RemoveAbandoned() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPattern))
	for _, dir := range dirs {
		file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue // without a lock, a process may just be creating it
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // the next start tries again
		}
		file.Close()
	}
}
