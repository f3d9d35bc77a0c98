package views

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
)

// FindResource returns the resource with a name as in kubectl: kind, plural, singular
// or short name in any case, optionally followed by a dot and the group. Without a
// group, Kubernetes' own groups are preferred, the core group first. If several other
// groups have the name, the group is required, because a guess could differ between
// clusters.
//
// If a kind has several versions, the first is returned.
func FindResource(resources []vedette.Resource, name string) (vedette.Resource, error) {
	var found []vedette.Resource
	for _, r := range slices.Concat(resources, KnownResources()) {
		sameKind := func(f vedette.Resource) bool { return f.Kind == r.Kind }
		if r.Matches(name) && !slices.ContainsFunc(found, sameKind) {
			found = append(found, r)
		}
	}
	found = vedette.PreferExact(found, name)
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
	case group == "extensions": // all its kinds moved to other groups
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
	return vedette.Errorf(vedette.Invalid,
		"no agent reports a kind %.100q%s A kind is known if an agent caches it (kinds in its configuration); GET /vedette/v1/kinds lists all kinds",
		name, orDefault(nearest.Hint(name, slices.Compact(names)), "."))
}

func ambiguousKind(found []vedette.Resource, name string) error {
	var names []string
	for _, r := range found {
		names = append(names, qualifiedName(r))
	}
	return vedette.Errorf(vedette.Invalid, "%q is ambiguous: use %s", name, strings.Join(names, " or "))
}

func qualifiedName(r vedette.Resource) string {
	if r.Kind.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Kind.Group
}
