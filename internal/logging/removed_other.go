//go:build !unix

package logging

import "os"

// isRemoved reports false: where open files cannot be removed, there is nothing to notice.
func isRemoved(*os.File) bool { return false }
