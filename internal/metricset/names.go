package metricset

import (
	"slices"
	"unicode/utf8"
)

// FirstNames sorts names and returns the first ones, at most limit. Series of these may have a label
// with the name: their number is bounded, and each scrape has the same ones. Names that are not
// UTF-8 are left out, because Prometheus rejects a scrape with such a label.
func FirstNames[N ~string](names []N, limit int) []N {
	names = slices.DeleteFunc(names, func(name N) bool { return !utf8.ValidString(string(name)) })
	slices.Sort(names)
	return names[:min(len(names), limit)]
}
