package contexts

import (
	"errors"
	"os"
	"time"

	"github.com/vedette-io/vedette"
)

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked by another process")

const (
	// lockTimeout is much longer than a change takes, also on a slow disk.
	lockTimeout  = 10 * time.Second
	lockInterval = 10 * time.Millisecond
)

// acquireLock locks a file until it is closed or the process ends. The file stays, because another
// process may wait for its lock.
func acquireLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	for deadline := time.Now().Add(lockTimeout); ; time.Sleep(lockInterval) {
		err := tryLock(file)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, errLocked) || time.Now().After(deadline) {
			file.Close()
			return nil, vedette.Errorf(vedette.Unavailable, "lock %s: %w: end the command that holds it, or set %s to a file elsewhere", path, err,
				PathVariable)
		}
	}
}
