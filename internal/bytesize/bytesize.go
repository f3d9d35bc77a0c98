// Package bytesize writes numbers of bytes for messages.
package bytesize

import "strconv"

// Text returns a size as "16 MiB", "1536 KiB" or "100 bytes": in the largest unit that leaves at least two digits, or that is exact. It
// rounds down, so that a limit is never said to be larger than it is.
func Text(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{" GiB", 1 << 30}, {" MiB", 1 << 20}, {" KiB", 1 << 10}} {
		if n >= 10*unit.size || n >= unit.size && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	if n == 1 {
		return "1 byte"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
