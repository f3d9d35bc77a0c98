package store

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the file for this process alone. The system lets go of it when
// the file is closed or the process ends, however it ends.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
}
