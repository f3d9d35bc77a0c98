//go:build unix

package sqldb

import (
	"os"
	"syscall"
)

// lockFile locks a file for this process. The operating system unlocks it when the file is closed
// or the process ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
