package write

import (
	"slices"

	"github.com/vedette-io/vedette/server/store/catalog"
)

// objectRow is a row of objects as it is written.
type objectRow struct {
	catalog.Key
	derivedColumns
	labelset int64
	uid      []byte // packed
	version  string
}

// storedRow is what a commit needs to know about a stored object.
type storedRow struct {
	catalog.Key
	catalog.ClusterKey
	managed  bool
	uid      []byte
	version  string
	labelset int64
	hash     int64 // of its labels
}

// sortRows sorts rows in the order of the primary key. All transactions write in this order, so
// that two of them cannot deadlock.
func sortRows(rows []objectRow) {
	slices.SortFunc(rows, func(a, b objectRow) int { return a.Compare(b.Key) })
}

func sortKeys(keys []catalog.Key) {
	slices.SortFunc(keys, catalog.Key.Compare)
}

// groupByNamespace splits sorted keys into runs that share kind and namespace.
func groupByNamespace(keys []catalog.Key) [][]catalog.Key {
	var out [][]catalog.Key
	for start := 0; start < len(keys); {
		end := start + 1
		for end < len(keys) && keys[end].KindID == keys[start].KindID && keys[end].Namespace == keys[start].Namespace {
			end++
		}
		out = append(out, keys[start:end])
		start = end
	}
	return out
}
