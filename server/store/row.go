package store

import (
	"cmp"
	"slices"
)

// rowKey is a vedette.Key with the id of its kind. Within an account it is the primary key of
// objects.
type rowKey struct {
	kindID          int64
	namespace, name string
}

func (k rowKey) compare(other rowKey) int {
	return cmp.Or(cmp.Compare(k.kindID, other.kindID), cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// objectRow is a row of objects as it is written.
type objectRow struct {
	rowKey
	derivedColumns
	labelset int64
	uid      []byte // packed
	version  string
}

// storedRow is what a commit needs to know about a stored object.
type storedRow struct {
	rowKey
	clusterKey
	managed  bool
	uid      []byte
	version  string
	labelset int64
	hash     int64 // of its labels
}

// sortRows sorts rows in the order of the primary key. All transactions write in this order, so
// that two of them cannot deadlock.
func sortRows(rows []objectRow) {
	slices.SortFunc(rows, func(a, b objectRow) int { return a.compare(b.rowKey) })
}

func sortKeys(keys []rowKey) {
	slices.SortFunc(keys, rowKey.compare)
}

// groupByNamespace splits sorted keys into runs that share kind and namespace.
func groupByNamespace(keys []rowKey) [][]rowKey {
	var out [][]rowKey
	for start := 0; start < len(keys); {
		end := start + 1
		for end < len(keys) && keys[end].kindID == keys[start].kindID && keys[end].namespace == keys[start].namespace {
			end++
		}
		out = append(out, keys[start:end])
		start = end
	}
	return out
}
