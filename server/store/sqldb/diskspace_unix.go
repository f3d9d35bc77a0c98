//go:build linux || darwin || freebsd

package sqldb

import (
	"golang.org/x/sys/unix"
)

// diskSpace returns the room that this process may use on a directory's file system. Some file systems have no limit
// of their own, such as ramfs and a tmpfs without a size, or do not know it, and say that they have no blocks at all.
func diskSpace(directory string) (DiskSpace, bool) {
	var stat unix.Statfs_t
	if unix.Statfs(directory, &stat) != nil || stat.Blocks == 0 {
		return DiskSpace{}, false
	}
	size := uint64(stat.Bsize) //nolint:gosec,unconvert // never negative; its type differs between systems
	//nolint:gosec,unconvert // as above
	return DiskSpace{Free: uint64(stat.Bavail) * size, Total: uint64(stat.Blocks) * size}, true
}
