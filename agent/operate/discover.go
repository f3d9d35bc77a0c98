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

// DiscoveredKind is one kind that the cluster serves. The kinds are in the order of the cluster's groups, by which names
// that several groups have are resolved.
type DiscoveredKind struct {
	Kind       string   `json:"kind"`
	Group      string   `json:"group,omitempty"`
	Version    string   `json:"version"`
	Versions   []string `json:"versions"` // all, the preferred one first
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Namespaced bool     `json:"namespaced"`
	Categories []string `json:"categories,omitempty"`
	Verbs      []string `json:"verbs,omitempty"`
}

// discover returns the kinds of the cluster.
func (r *run) discover(ctx context.Context) result {
	cat, err := r.Discover(ctx)
	if err != nil {
		return errorResult(err)
	}
	d := DiscoverResult{Kinds: []DiscoveredKind{}, UnknownGroups: cat.UnknownGroups}
	for _, k := range cat.Served {
		d.Kinds = append(d.Kinds, toDiscoveredKind(k))
	}
	return jsonResult(d)
}

func toDiscoveredKind(k vedette.ServedKind) DiscoveredKind {
	return DiscoveredKind{Kind: k.Kind.Name, Group: k.Kind.Group, Version: k.Version, Versions: k.Versions, Plural: k.Plural,
		Singular: k.Singular, ShortNames: k.ShortNames, Namespaced: k.Namespaced, Categories: k.Categories, Verbs: k.Verbs}
}
