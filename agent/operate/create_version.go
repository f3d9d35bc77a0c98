package operate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/operate/versioning"
)

// createVersion creates the object of a version, and fails if it exists. The object becomes what an
// apply would have created: the versions of Clouddriver are compared by the last-applied annotation,
// and the next apply of the same version needs to know which fields the manifest had.
func (r *run) createVersion(ctx context.Context, p request.Path, m manifest.Manifest) result {
	if !r.applyOptionsFor(p, m, apply.StrategyOf(m)).ServerSide {
		return r.createObject(ctx, p, apply.Annotate(m).ObjectToCreate(m), apply.ClientSideManager, true)
	}
	delete(m.Meta(), "managedFields") // copied from a live object
	if versioning.NeedsDigest(p.Kind, m) {
		versioning.SetDigest(p.Kind, m, r.operator.salts.SaltFor(versioning.SeriesOf(p.Key(), m)))
	}
	raw, status, err := postObject(ctx, r.Sender, p, m.Object, createManager, true)
	if err != nil {
		return errorResult(err)
	}
	if err := r.takeOverCreatedFields(ctx, p, raw); err != nil {
		r.Warnings.Add(fmt.Sprintf("%s was created, but its fields have the manager %s, so an apply of the same version will not remove fields: %v",
			p.Key(), createManager, err))
	}
	return r.objectResult(p, raw, status)
}

// takeOverCreatedFields moves the fields of a new object to the manager of server-side applies. A
// server-side apply has no option to fail if the object exists, so the object was created by a POST,
// whose fields the manager of applies does not own.
func (r *run) takeOverCreatedFields(ctx context.Context, p request.Path, created []byte) error {
	if r.IsDryRun() {
		return nil
	}
	meta, err := parseMeta(created)
	if err != nil {
		return err
	}
	_, err = r.patchManagedFields(ctx, p, meta, func(meta *metav1.PartialObjectMetadata) ([]byte, error) {
		return apply.TakeOverPatch(meta, sets.New(createManager), r.operator.cfg.Manager)
	})
	return err
}
