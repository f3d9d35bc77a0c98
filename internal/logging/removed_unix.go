//go:build unix

package logging

import (
	"os"
	"syscall"
)

// isRemoved reports whether an open file has no name anymore, so that nobody can read what is written to it.
// It looks up no path, so that each line can afford it.
func isRemoved(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
