package tables

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// selector is a label selector in a manifest.
type selector struct {
	MatchLabels      map[string]string
	MatchExpressions []requirement
}

type requirement struct {
	Key      string
	Operator string
	Values   []string
}

// String formats a selector for kubectl's -l, sorted by key.
func (s selector) String() string {
	all := slices.Clone(s.MatchExpressions)
	for key, value := range s.MatchLabels {
		all = append(all, requirement{Key: key, Operator: "=", Values: []string{value}})
	}
	slices.SortFunc(all, func(a, b requirement) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
	})
	var parts []string
	for _, r := range all {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ",")
}

func (r requirement) String() string {
	values := "(" + strings.Join(slices.Sorted(slices.Values(r.Values)), ",") + ")"
	switch r.Operator {
	case "=":
		return r.Key + "=" + r.Values[0]
	case "In":
		return r.Key + " in " + values
	case "NotIn":
		return r.Key + " notin " + values
	case "DoesNotExist":
		return "!" + r.Key
	default:
		return r.Key
	}
}

// formatLabels formats labels as kubectl does: "a=1,b=2".
func formatLabels(m map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, key+"="+m[key])
	}
	return cmp.Or(strings.Join(parts, ","), none)
}
