package task

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// cleanupOp deletes the versions that a deployment has made superfluous:
// cleanupArtifacts.
type cleanupOp struct {
	commonFields
	Manifests []manifest.Manifest `json:"manifests"` // as they were deployed
}

// check validates nothing, as in Clouddriver.
func (d *cleanupOp) check(*validation) {}

func (d *cleanupOp) run(ctx context.Context, t *opContext) (*Result, error) {
	result := newResult()
	result.Manifests = nil
	for _, m := range d.Manifests {
		if m.Annotation(maxVersionHistory) == "" {
			continue // and the cluster need not be asked
		}
		target := vedette.Target{Kind: m.Kind().String(), APIVersion: m.APIVersion(), Namespace: m.Namespace()}
		live, err := t.list(ctx, target, "")
		if err != nil {
			return nil, err
		}
		// Without a namespace all of them are listed, which is right for
		// cluster-scoped kinds alone.
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
