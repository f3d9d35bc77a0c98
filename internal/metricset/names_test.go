package metricset

import (
	"slices"
	"testing"
)

func TestFirstNamesAreSortedAndValid(t *testing.T) {
	for _, tt := range []struct {
		names []string
		limit int
		want  []string
	}{
		{[]string{"c", "a", "b"}, 2, []string{"a", "b"}},
		{[]string{"c", "a", "b"}, 0, nil},
		{[]string{"b", "a"}, 9, []string{"a", "b"}},
		{[]string{"b", "a\xff", "süd"}, 9, []string{"b", "süd"}},
		{nil, 3, nil},
	} {
		if got := FirstNames(slices.Clone(tt.names), tt.limit); !slices.Equal(got, tt.want) {
			t.Errorf("%q, limit %d: got %q, want %q", tt.names, tt.limit, got, tt.want)
		}
	}
}
