package compare

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Difference is one difference between two answers.
type Difference struct {
	// Field is where they differ, for example ".[].moniker.app"; "." for the whole
	// body; or "status 200/404".
	Field string
	// A and B are the values as JSON, in the answers that the example is from. Empty if one side
	// does not have the field.
	A, B string
}

// Compare returns how two answers to the same request differ. What they say of hidden accounts does
// not count.
func Compare(a, b Answer, hidden []string) ([]Difference, error) {
	if a.Status != b.Status {
		return []Difference{{Field: fmt.Sprintf("status %d/%d", a.Status, b.Status), A: string(a.Body), B: string(b.Body)}}, nil
	}
	x, err := decodeValue(a.Body)
	if err != nil {
		return nil, fmt.Errorf("decode the first body of %s: %w", a.Path, err)
	}
	y, err := decodeValue(b.Body)
	if err != nil {
		return nil, fmt.Errorf("decode the second body of %s: %w", a.Path, err)
	}
	if a.Status >= 400 {
		dropTimestamp(x)
		dropTimestamp(y)
	}
	form := Form(a.Path)
	var d differ
	d.values("", hideAccounts(form, x, hidden), hideAccounts(form, y, hidden))
	return d.found, nil
}

// dropTimestamp removes the time of an error, which always differs.
func dropTimestamp(v any) {
	if tree, ok := v.(map[string]any); ok {
		delete(tree, "timestamp")
	}
}

// wholeBody is the field of a difference between whole bodies.
const wholeBody = "."

type differ struct{ found []Difference }

// maxDifferences bounds the memory of the differences between two answers. The last one says that
// there are more, so that no rule accepts what was left out.
const maxDifferences = 1000

func (d *differ) add(at string, a, b string) {
	switch n := len(d.found); {
	case n == maxDifferences:
		return
	case n == maxDifferences-1:
		at = "more than 1000 differences"
		a = ""
		b = ""
	}
	d.found = append(d.found, Difference{Field: cmp.Or(at, wholeBody), A: a, B: b})
}

func (d *differ) values(at string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.maps(at, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			d.lists(at+".[]", x, y)
			return
		}
	}
	if canonical(a) != canonical(b) {
		d.add(at, encode(a), encode(b))
	}
}

func (d *differ) maps(at string, a, b map[string]any) {
	for _, key := range sortedKeys(a, b) {
		x, inA := a[key]
		y, inB := b[key]
		field := at + "." + fieldName(key)
		switch {
		case !inB:
			d.add(field, encode(x), "")
		case !inA:
			d.add(field, "", encode(y))
		default:
			d.values(field, x, y)
		}
	}
}

// lists compares lists as sets. Items that are not equal are paired by what identifies them, so
// that a difference is named by the field within the items.
func (d *differ) lists(at string, a, b []any) {
	a, b = withoutCommon(a, b)
	for _, pair := range pairItems(a, b) {
		switch {
		case !pair.inB:
			d.add(at, encode(pair.a), "")
		case !pair.inA:
			d.add(at, "", encode(pair.b))
		default:
			d.values(at, pair.a, pair.b)
		}
	}
}

func sortedKeys(maps ...map[string]any) []string {
	var keys []string
	for _, m := range maps {
		for key := range m {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// fieldName returns the name of a field for grouping. Keys that are data, such as names of
// annotations, have a dot, a slash or a dash.
func fieldName(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	if domain, _, found := strings.Cut(key, "/"); found && strings.HasSuffix(domain, "spinnaker.io") {
		return "<spinnaker>"
	}
	return "<key>"
}
