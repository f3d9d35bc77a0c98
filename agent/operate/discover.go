package operate

import (
	"context"

	"github.com/vedette-io/vedette"
)

// DiscoverResult is the Result of a discover operation, as JSON.
type DiscoverResult struct {
	Kinds []DiscoveredKind `json:"kinds"`
	// UnknownGroups are groups whose API servers do not respond.
	UnknownGroups []string `json:"unknownGroups,omitempty"`
}

// DiscoveredKind is one kind that the cluster serves.
type DiscoveredKind struct {
	Kind       string   `json:"kind"`
	Group      string   `json:"group,omitempty"`
	Version    string   `json:"version"`
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Namespaced bool     `json:"namespaced"`
}

// discover returns the kinds of the cluster. It invalidates the cache, because a user who discovers
// expects that later operations find the same kinds.
func (r *run) discover(ctx context.Context) result {
	cat, err := r.operator.cluster.Discover(ctx)
	if err != nil {
		return errorResult(err)
	}
	r.operator.kinds.invalidate()
	d := DiscoverResult{Kinds: []DiscoveredKind{}, UnknownGroups: cat.UnknownGroups}
	for _, resource := range cat.Resources {
		d.Kinds = append(d.Kinds, toDiscoveredKind(resource))
	}
	return jsonResult(d)
}

func toDiscoveredKind(r vedette.Resource) DiscoveredKind {
	return DiscoveredKind{Kind: r.Kind.Name, Group: r.Kind.Group, Version: r.Version, Plural: r.Plural,
		Singular: r.Singular, ShortNames: r.ShortNames, Namespaced: r.Namespaced}
}
