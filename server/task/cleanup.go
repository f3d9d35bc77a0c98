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
		live = slices.DeleteFunc(live, func(o manifest.Manifest) bool { return !t.isBeside(m, o) })
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

// isBeside reports whether an object is in the namespace of a manifest. Without a namespace the
// cluster lists the objects of all namespaces, and the manifest is cluster-scoped or in the
// default namespace.
func (t *opContext) isBeside(m, live manifest.Manifest) bool {
	return live.Namespace() == m.Namespace() || m.Namespace() == "" && live.Namespace() == t.op.namespace
}

const maxVersionHistory = "strategy.spinnaker.io/max-version-history"
