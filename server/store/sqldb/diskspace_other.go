//go:build !linux && !darwin && !freebsd

package sqldb

// diskSpace returns nothing: the room on the file system is not known.
func diskSpace(string) (DiskSpace, bool) { return DiskSpace{}, false }
