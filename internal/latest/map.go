package latest

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Map is an immutable map in the order of its keys. The next version shares all entries that have not changed, so that it costs a copy of
// pointers, and shows what has changed. The zero value is empty.
type Map[K cmp.Ordered, V any] struct{ entries []entry[K, V] }

type entry[K, V any] struct {
	key   K
	value *V
}

func (m Map[K, V]) search(key K) (int, bool) {
	return slices.BinarySearchFunc(m.entries, key, func(e entry[K, V], key K) int { return cmp.Compare(e.key, key) })
}

// Get returns the value of a key, or nil.
func (m Map[K, V]) Get(key K) *V {
	if at, found := m.search(key); found {
		return m.entries[at].value
	}
	return nil
}

// Len returns the number of entries.
func (m Map[K, V]) Len() int { return len(m.entries) }

// All returns all entries in the order of their keys.
func (m Map[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for _, e := range m.entries {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// With returns the map with other values of some keys. A value that is nil removes its key.
func (m Map[K, V]) With(changes map[K]*V) Map[K, V] {
	next := make([]entry[K, V], 0, len(m.entries)+len(changes))
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		at, found := m.search(key)
		next = append(next, m.entries[:at]...)
		if value := changes[key]; value != nil {
			next = append(next, entry[K, V]{key, value})
		}
		if found {
			at++
		}
		m.entries = m.entries[at:]
	}
	return Map[K, V]{append(next, m.entries...)}
}

// Changed returns the keys whose values are not those of an earlier version, or that only one of both has.
func (m Map[K, V]) Changed(before Map[K, V]) []K {
	var changed []K
	x, y := m.entries, before.entries
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] == y[0]: // most of them, so that it comes first
			x, y = x[1:], y[1:]
		case x[0].key == y[0].key:
			changed = append(changed, x[0].key)
			x, y = x[1:], y[1:]
		case x[0].key < y[0].key:
			changed = append(changed, x[0].key)
			x = x[1:]
		default:
			changed = append(changed, y[0].key)
			y = y[1:]
		}
	}
	for _, e := range append(slices.Clip(x), y...) { // one of them is empty
		changed = append(changed, e.key)
	}
	return changed
}
