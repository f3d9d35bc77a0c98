package latest_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vedette-io/vedette/internal/latest"
)

// TestMap compares versions of a Map with those of a map of Go, over random changes. Versions before stay as they are.
func TestMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // not secret
	var m latest.Map[int, int]
	want := map[int]*int{}
	versions, wanted := []latest.Map[int, int]{m}, []map[int]*int{maps.Clone(want)}
	for range 300 {
		changes, differ := map[int]*int{}, []int(nil)
		for range random.IntN(5) {
			key := random.IntN(30)
			switch random.IntN(3) {
			case 0:
				changes[key] = nil
			case 1:
				changes[key] = want[key] // the same value, or none
			default:
				changes[key] = new(int)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(changes)) {
			if changes[key] != want[key] {
				differ = append(differ, key)
			}
			if want[key] = changes[key]; want[key] == nil {
				delete(want, key)
			}
		}
		next := m.With(changes)
		if got := next.Changed(m); !slices.Equal(got, differ) || !slices.Equal(m.Changed(next), differ) {
			t.Fatalf("got changed keys %v and %v, want %v", got, m.Changed(next), differ)
		}
		m = next
		versions, wanted = append(versions, m), append(wanted, maps.Clone(want))
	}
	for i, m := range versions {
		var keys []int
		for key, value := range m.All() {
			keys = append(keys, key)
			if wanted[i][key] != value || m.Get(key) != value {
				t.Fatalf("version %d has another value of %d", i, key)
			}
		}
		if !slices.Equal(keys, slices.Sorted(maps.Keys(wanted[i]))) || m.Len() != len(keys) || m.Get(30) != nil {
			t.Fatalf("version %d has the keys %v, want %v", i, keys, wanted[i])
		}
	}
}
