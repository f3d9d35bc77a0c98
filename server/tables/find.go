package tables

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
)

// FindResource returns the resource with a name as in kubectl (vedette.FindKinds), among those that agents report and
// those that each cluster serves. If several groups other than Kubernetes' own have the name, the group is required,
// because only the cluster knows their order.
//
// If a kind has several versions, the first is returned.
func FindResource(resources []vedette.Resource, name string) (vedette.Resource, error) {
	found := MatchResources(resources, name)
	switch {
	case len(found) == 0:
		return vedette.Resource{}, unknownKind(resources, name)
	case len(found) > 1 && !vedette.IsNativeGroup(found[0].Kind.Group):
		return vedette.Resource{}, ambiguousKind(found, name)
	}
	return found[0], nil
}

// MatchResources returns the resources that have the same right to a name, each kind once. A resource in another version
// than the name says does not match.
func MatchResources(resources []vedette.Resource, name string) (found []vedette.Resource) {
	match := vedette.FindKinds(slices.Concat(resources, KnownResources()), name,
		func(r vedette.Resource) (vedette.Resource, []string) { return r, nil })
	for _, r := range match.Kinds {
		if !slices.ContainsFunc(found, func(f vedette.Resource) bool { return f.Kind == r.Kind }) {
			found = append(found, r)
		}
	}
	return found
}

func unknownKind(resources []vedette.Resource, name string) error {
	var names []string
	for _, r := range slices.Concat(resources, KnownResources()) {
		names = append(names, NameOf(r, strings.Contains(name, ".")))
	}
	slices.Sort(names)
	return vedette.Errorf(vedette.Invalid,
		"no agent reports a kind %.100q%s A kind is known if an agent caches it (kinds in its configuration); GET /vedette/v1/kinds lists all kinds",
		name, cmp.Or(nearest.Hint(name, slices.Compact(names)), "."))
}

func ambiguousKind(found []vedette.Resource, name string) error {
	var names []string
	for _, r := range found {
		names = append(names, NameOf(r, true))
	}
	return vedette.Errorf(vedette.Invalid, "%q is ambiguous: use %s", name, strings.Join(names, " or "))
}

// NameOf returns the plural of a resource, followed by its group if it is qualified.
func NameOf(r vedette.Resource, qualified bool) string {
	if r.Kind.Group == "" || !qualified {
		return r.Plural
	}
	return r.Plural + "." + r.Kind.Group
}
