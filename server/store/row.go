package store

import (
	"cmp"
	"slices"
)

// rowKey is a vedette.Key with its kind's number. Within an account it is the
// primary key of objects.
type rowKey struct {
	kind            int64
	namespace, name string
}

func (k rowKey) compare(other rowKey) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// row is an object as it is written.
type row struct {
	rowKey
	labelset    int64
	uid         []byte // packed
	version     string
	application string
	head, body  []byte // compressed
}

// storedRow is what a commit needs to know of an object that is there already.
type storedRow struct {
	rowKey
	uid      []byte
	version  string
	labelset int64
	hash     int64 // of its labels
}

// sortRows brings rows into the order of the primary key, in which every
// transaction writes: two of them then can't lock each other's rows crosswise.
func sortRows(rows []row) {
	slices.SortFunc(rows, func(a, b row) int { return a.compare(b.rowKey) })
}

func sortKeys(keys []rowKey) {
	slices.SortFunc(keys, rowKey.compare)
}

// runs cuts a sorted list of keys into those that share kind and namespace.
func runs(keys []rowKey) [][]rowKey {
	var out [][]rowKey
	for start := 0; start < len(keys); {
		end := start + 1
		for end < len(keys) && keys[end].kind == keys[start].kind && keys[end].namespace == keys[start].namespace {
			end++
		}
		out = append(out, keys[start:end])
		start = end
	}
	return out
}
