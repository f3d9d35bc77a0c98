package reload

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
