package filewatch

import (
	"io/fs"
	"syscall"
)

// wasMoved reports whether a file was renamed after it was written. Each write sets both times of a
// file; a rename sets only one of them.
func wasMoved(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Ctim.Nano() > stat.Mtim.Nano()
}

// changedAt returns when a file was last changed in any way. Programs can set the time of the content, but not this.
func changedAt(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return 0
}
