package views

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
)

// FindResource returns the resource that a name means, as kubectl takes it: kind,
// plural, singular or short name in any case, alone or followed by a dot and
// the group. A name without a group that several groups know means Kubernetes'
// own: the core group's before others. Where only foreign groups know it the
// caller must say which; to guess differently from cluster to cluster would be
// worse than to ask.
//
// Of a kind that is there in several versions the first is returned.
func FindResource(resources []vedette.Resource, name string) (vedette.Resource, error) {
	var found []vedette.Resource
	for _, r := range slices.Concat(resources, KnownResources()) {
		sameKind := func(f vedette.Resource) bool { return f.Kind == r.Kind }
		if r.Matches(name) && !slices.ContainsFunc(found, sameKind) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return vedette.Resource{}, unknownKind(resources, name)
	case 1:
		return found[0], nil
	}
	slices.SortStableFunc(found, func(a, b vedette.Resource) int { return groupRank(a.Kind.Group) - groupRank(b.Kind.Group) })
	if groupRank(found[0].Kind.Group) == foreignRank {
		return vedette.Resource{}, ambiguousKind(found, name)
	}
	return found[0], nil
}

const foreignRank = 3

func groupRank(group string) int {
	switch {
	case group == "":
		return 0
	case group == "extensions": // every kind of it has moved elsewhere
		return 2
	case vedette.IsNativeGroup(group):
		return 1
	default:
		return foreignRank
	}
}

func unknownKind(resources []vedette.Resource, name string) error {
	var names []string
	for _, r := range slices.Concat(resources, KnownResources()) {
		if strings.Contains(name, ".") {
			names = append(names, qualifiedName(r))
		} else {
			names = append(names, r.Plural)
		}
	}
	slices.Sort(names)
	return vedette.Errorf(vedette.Invalid, "no agent reports a kind %.100q%s Kinds are there once an agent caches them (kinds in its configuration; GET /vedette/v1/kinds lists them)",
		name, orDefault(nearest.Hint(name, slices.Compact(names)), "."))
}

func ambiguousKind(found []vedette.Resource, name string) error {
	var names []string
	for _, r := range found {
		names = append(names, qualifiedName(r))
	}
	return vedette.Errorf(vedette.Invalid, "%q may mean %s: write one of them", name, strings.Join(names, " or "))
}

func qualifiedName(r vedette.Resource) string {
	if r.Kind.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Kind.Group
}
