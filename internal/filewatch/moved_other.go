//go:build !linux

package filewatch

import "io/fs"

// wasMoved returns false: whether a file was renamed after it was written is not known.
func wasMoved(fs.FileInfo) bool { return false }

// changedAt returns 0: when a file was last changed is not known, besides the time of its content.
func changedAt(fs.FileInfo) int64 { return 0 }
