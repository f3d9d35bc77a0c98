package sqldb

import (
	"testing"
)

// TestDiskSpaceIsNotKnown checks that a file system that has no blocks, like ramfs, does not count as full. /proc stands for
// it, because nothing has to be mounted.
func TestDiskSpaceIsNotKnown(t *testing.T) {
	for directory, want := range map[string]bool{"/proc": false, t.TempDir(): true, "/does/not/exist": false} {
		if space, known := diskSpace(directory); known != want || known && space.Total == 0 {
			t.Errorf("%s: got %+v, known: %v, want known: %v", directory, space, known, want)
		}
	}
}
