//go:build unix

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

const (
	tempPrefix = "vedette-controlplane-"
	ownerLock  = "owner.lock"

	// maxDir leaves room for the longest socket name. The strictest system allows 104 bytes for the
	// path of a Unix socket.
	maxDir = 104 - len("/"+etcdPeerSocket) - 1
)

// maxClaims is how often to try to claim a directory. Another process that sweeps may have the lock of
// a new directory for a moment, and removes it.
const maxClaims = 10

// claimDir creates dir, or a temporary directory if dir is "", and locks it. While the lock is
// held, no process sweeps the directory.
func claimDir(dir string) (claimed string, lock *fileLock, err error) {
	removeStaleDirs()
	if dir != "" {
		return claimNamedDir(dir)
	}
	for range maxClaims {
		claimed, err = os.MkdirTemp("", tempPrefix)
		if err != nil {
			return "", nil, fmt.Errorf("create the plane's directory: %w", err)
		}
		lock, err = lockOwner(claimed)
		if !errors.Is(err, errLocked) {
			break
		}
	}
	return claimed, lock, err
}

// NamedDir returns the directory of a plane with a name that a person has chosen, so that other
// commands find its kubeconfig. It is temporary too: if its owner is killed, it is swept.
func NamedDir(name string) (string, error) {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`).MatchString(name) {
		return "", fmt.Errorf("name a plane %q: use at most 31 lower-case letters, digits and dashes, starting with a letter", name)
	}
	return filepath.Join(os.TempDir(), tempPrefix+name), nil
}

// claimNamedDir claims a directory that is new, empty, or left by a dead plane. It removes only
// files of a plane.
func claimNamedDir(dir string) (string, *fileLock, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("find the plane's directory: %w", err)
	}
	if err := removeStaleDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("create the plane's directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, fmt.Errorf("read the plane's directory: %w", err)
	}
	if len(entries) > 0 {
		return "", nil, fmt.Errorf("use %s for a plane: it is not empty: choose another directory", dir)
	}
	lock, err := lockOwner(dir)
	return dir, lock, err
}

func lockOwner(dir string) (*fileLock, error) {
	if len(dir) > maxDir {
		return nil, errors.Join(
			fmt.Errorf("use %s for a plane: its path has %d bytes, the maximum for Unix sockets is %d", dir, len(dir), maxDir),
			os.Remove(dir))
	}
	lock, err := tryLock(filepath.Join(dir, ownerLock), os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", dir, err)
	}
	return lock, nil
}

// removeStaleDirs removes temporary directories whose owners were killed. It leaves those that it
// cannot remove, for example another user's.
func removeStaleDirs() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, dir := range dirs {
		_ = removeStaleDir(dir)
	}
}

// removeStaleDir removes a plane's directory if its owner is dead. It fails with os.ErrNotExist if
// there is no plane, and with errLocked if the plane is running.
func removeStaleDir(dir string) error {
	lock, err := tryLock(filepath.Join(dir, ownerLock), 0)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("a plane is running in %s: %w", dir, err)
	}
	if err != nil {
		return err
	}
	defer lock.release()
	return os.RemoveAll(dir)
}
