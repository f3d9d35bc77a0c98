package codec

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// HashLabels returns a hash of a label set, which is never 0. It is a cryptographic hash, so
// that nobody in a cluster can create a set that is taken for another one.
func HashLabels(labels map[string]string) int64 {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b = appendString(appendString(b, name), labels[name])
	}
	sum := sha256.Sum256(b)
	if hash := int64(binary.LittleEndian.Uint64(sum[:8])); hash != 0 {
		return hash
	}
	return 1
}
