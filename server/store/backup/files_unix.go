//go:build unix

package backup

import (
	"errors"
	"os"
	"syscall"
)

// giveToOwner gives a file to the owner of a directory if root runs this process, because a server that runs as another user could
// not open it.
func giveToOwner(path, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(owner.Uid), int(owner.Gid))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
