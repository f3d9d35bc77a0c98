//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

var errLocked = errors.New("locked by another process")

// fileLock is an advisory lock on a file. It ends with its process in all cases, and children do
// not inherit it.
type fileLock struct{ file *os.File }

// heldLocks keeps the files of locks that are held. A file that nobody refers to is closed by the
// garbage collector, which ends its lock.
var heldLocks sync.Map // of *os.File

// tryLock opens a file with O_RDWR and flag, and locks it. It fails with errLocked if the lock is
// held, even in this process. It also fails if the file was removed meanwhile, because another
// process could lock a new file of that name.
func tryLock(path string, flag int) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && isSameFile(file, path) {
		heldLocks.Store(file, nil)
		return &fileLock{file}, nil
	}
	file.Close()
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, errLocked
}

func isSameFile(file *os.File, path string) bool {
	openInfo, err := file.Stat()
	if err != nil {
		return false
	}
	pathInfo, err := os.Stat(path)
	return err == nil && os.SameFile(openInfo, pathInfo)
}

// waitLock calls tryLock until it succeeds. While it waits, it calls onWait every half minute.
func waitLock(ctx context.Context, path string, onWait func()) (*fileLock, error) {
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	for waited := 0; ; waited++ {
		lock, err := tryLock(path, os.O_CREATE)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if waited%150 == 5 { // not during the first second
			onWait()
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, context.Cause(ctx))
		}
	}
}

// release releases the lock. The file remains.
func (l *fileLock) release() {
	heldLocks.Delete(l.file)
	l.file.Close()
}
