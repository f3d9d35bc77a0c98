//go:build unix

package tempdir

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

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

// RemoveAbandoned removes the directories of a pattern whose processes were killed, and returns how many.
// Call it at start, because the process may have no such directory of its own. It leaves what it cannot
// lock or remove, what belongs to other users, and links, to which others may have given such a name.
func RemoveAbandoned(parent, pattern string) (removed int) {
	if parent == "" {
		parent = os.TempDir()
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if matched, err := filepath.Match(pattern, entry.Name()); err == nil && matched && removeAbandoned(filepath.Join(parent, entry.Name())) {
			removed++
		}
	}
	return removed
}

func removeAbandoned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !isOwn(info) {
		return false
	}
	// Without a lock, a process may just be creating it.
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	return os.RemoveAll(dir) == nil // the next start tries again
}

func isOwn(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
