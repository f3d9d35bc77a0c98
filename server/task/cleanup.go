package task

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// cleanupOp deletes the versions that a deployment replaced and that exceed the version
// history: cleanupArtifacts.
type cleanupOp struct {
	commonFields
	Manifests []manifest.Manifest `json:"manifests"` // as deployed
}

// check validates nothing, like Clouddriver.
func (d *cleanupOp) check(*validation) {}

func (d *cleanupOp) run(ctx context.Context, t *opContext) (*Result, error) {
	result := newResult()
	result.Manifests = nil
	for _, m := range d.Manifests {
		if m.Annotation(maxVersionHistory) == "" {
			continue // no query is needed
		}
		target := vedette.Target{Kind: m.Kind().String(), APIVersion: m.APIVersion(), Namespace: m.Namespace()}
		live, err := t.list(ctx, target, "")
		if err != nil {
			return nil, err
		}
		// Without a namespace the cluster lists all namespaces, but only cluster-scoped
		// objects have no namespace.
		live = slices.DeleteFunc(live, func(o manifest.Manifest) bool { return o.Namespace() != m.Namespace() })
		for _, name := range manifest.Outdated(m, live) {
			target.Name = name
			t.reportf("Deleting artifact '%s'", displayName(target))
			names, err := t.deleteObjects(ctx, vedette.DeleteArgs{Target: target, MissingOK: true})
			if err != nil {
				return nil, err
			}
			result.Names[target.Namespace] = union(result.Names[target.Namespace], names)
		}
	}
	return result, nil
}

const maxVersionHistory = "strategy.spinnaker.io/max-version-history"
