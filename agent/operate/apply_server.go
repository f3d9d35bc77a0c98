package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// The field managers of kubectl. API servers treat the first as a special case
// twice: it keeps the last-applied annotation in step, and is in no conflict
// with what that annotation says.
const (
	kubectlManager     = "kubectl"
	clientSideManager  = "kubectl-client-side-apply"
	lastAppliedManager = "kubectl-last-applied"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// applyServerSide lets the API server merge a manifest, and makes what earlier
// client-side applies wrote ours, so that it disappears with the manifest's
// fields.
func (r *run) applyServerSide(ctx context.Context, p resourcePath, m manifest.Manifest, opts applyOptions) result {
	delete(m.Meta(), "managedFields") // copied from a live object; refused otherwise
	r.clearPreconditionsIfMissing(ctx, p, m)
	r.setDigest(ctx, p, m)
	body, previousVersion := m.Encode(), ""
	if opts.compare {
		previousVersion = r.liveVersion(ctx, p)
	}
	raw, status, err := r.sendApplyPatch(ctx, p, body, r.operator.cfg.Manager, opts.force)
	if err != nil {
		return errorResult(err)
	}
	if r.dryRun { // what follows builds on what is not there. kubectl asks for it, and is told nothing else
		return r.objectResult(p, raw, status)
	}
	reapplied, err := r.takeOverAndReapply(ctx, p, raw, body, opts)
	switch {
	case err != nil && opts.clearManagedFields: // which was asked for
		return errorResult(err)
	case err != nil:
		r.warnings.add(err.Error())
	case reapplied != nil:
		raw = reapplied
	}
	return r.objectResultSince(p, raw, status, previousVersion)
}

// takeOverAndReapply takes over the fields of earlier managers, and applies once more
// where there were any, so that those disappear that the manifest does not hold. It
// returns nil where there were none. What fails here fails after the apply itself.
func (r *run) takeOverAndReapply(ctx context.Context, p resourcePath, applied, body []byte, opts applyOptions) ([]byte, error) {
	changed, err := r.takeOverFields(ctx, p, applied, opts)
	if err != nil {
		return nil, fmt.Errorf("%s was applied, but the fields of its earlier managers could not be taken over, so that fields that the manifest no longer has may still be there; the next apply tries again: %w", p.key(), err)
	}
	if !changed {
		return nil, nil
	}
	raw, _, err := r.sendApplyPatch(ctx, p, body, r.operator.cfg.Manager, opts.force || opts.clearManagedFields)
	if err != nil {
		return nil, fmt.Errorf("%s was applied and the fields of its earlier managers were taken over, but those that the manifest no longer has could not be removed; apply it again: %w", p.key(), err)
	}
	return raw, nil
}

// liveVersion returns the version of an object, empty where it can't be read: what it
// is compared with is not known then, which is no failure.
func (r *run) liveVersion(ctx context.Context, p resourcePath) string {
	raw, _, err := r.do(ctx, p, request{accept: withFullObjectFallback(p, acceptMetadata)})
	if err != nil {
		return ""
	}
	return resourceVersionOf(raw)
}

func (r *run) sendApplyPatch(ctx context.Context, p resourcePath, body []byte, manager string, force bool) ([]byte, int, error) {
	query := url.Values{"fieldManager": {manager}}
	if force {
		query.Set("force", "true")
	}
	var raw []byte
	var status int
	err := r.retryOnConflict(ctx, func() (err error) {
		raw, status, err = r.do(ctx, p, request{method: http.MethodPatch, contentType: contentTypeApplyPatch, query: query, body: body, isManifest: true})
		return err
	})
	return raw, status, err
}

// retryOnConflict repeats what ended in a conflict that reading again may cure.
func (r *run) retryOnConflict(ctx context.Context, try func() error) error {
	backoff := r.operator.cfg.InitialBackoff
	for attempt := 1; ; attempt++ {
		err := try()
		if !isConflict(err) || attempt >= r.operator.cfg.MaxConflictAttempts || !sleep(ctx, backoff) {
			return err
		}
		backoff = min(2*backoff, r.operator.cfg.MaxBackoff)
	}
}

// takeOverFields moves fields of client-side applies, or of all managers where that is
// asked for, to the manager of server-side applies. It reports whether anything
// was moved.
func (r *run) takeOverFields(ctx context.Context, p resourcePath, raw []byte, opts applyOptions) (bool, error) {
	meta, err := parseMeta(raw)
	if err != nil {
		return false, err
	}
	if opts.clearManagedFields {
		return r.patchManagedFields(ctx, p, meta, func(meta *metav1.PartialObjectMetadata) ([]byte, error) { return r.soleManagerPatch(meta) })
	}
	owners := clientSideManagers(meta)
	if owners.Len() == 0 {
		return false, nil
	}
	if meta, err = r.keepLastApplied(ctx, p, meta); err != nil {
		return false, err
	}
	return r.patchManagedFields(ctx, p, meta, func(meta *metav1.PartialObjectMetadata) ([]byte, error) {
		return csaupgrade.UpgradeManagedFieldsPatch(meta, owners, r.operator.cfg.Manager)
	})
}

// patchManagedFields sends the patch that a function makes of managed fields, and makes it
// anew from what is there where another was faster.
func (r *run) patchManagedFields(ctx context.Context, p resourcePath, meta *metav1.PartialObjectMetadata, makePatch func(*metav1.PartialObjectMetadata) ([]byte, error)) (changed bool, err error) {
	err = r.retryOnConflict(ctx, func() error {
		patch, err := makePatch(meta)
		if err != nil || patch == nil {
			return err
		}
		_, _, err = r.do(ctx, p, request{method: http.MethodPatch, contentType: contentTypeJSONPatch, body: patch, accept: acceptMetadata})
		changed = err == nil
		if !isConflict(err) {
			return err
		}
		raw, _, readErr := r.do(ctx, p, request{accept: acceptMetadata})
		if readErr != nil {
			return readErr
		}
		if meta, readErr = parseMeta(raw); readErr != nil {
			return readErr
		}
		return err
	})
	return changed, err
}

// isConflict reports whether another writer was faster. Conflicts of field
// managers are none of these.
func isConflict(err error) bool {
	r := asStatusError(err)
	return r != nil && r.Status == http.StatusConflict && r.Reason == string(metav1.StatusReasonConflict) && !r.isFieldManagerConflict()
}

// keepLastApplied gives the annotation of client-side applies a manager of its
// own, or it would vanish and a later client-side apply would miss it. A Secret's
// annotation may vanish: it is a copy of its data.
func (r *run) keepLastApplied(ctx context.Context, p resourcePath, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	value, exists := meta.Annotations[lastApplied]
	owners := csaupgrade.FindFieldsOwners(meta.ManagedFields, metav1.ManagedFieldsOperationApply, lastAppliedPath())
	if !exists || len(owners) > 0 || r.operator.cfg.Manager != kubectlManager || p.isSecret() {
		return meta, nil
	}
	inner := object{"name": p.name, "annotations": object{lastApplied: value}}
	if p.namespace != "" {
		inner["namespace"] = p.namespace
	}
	body, err := json.Marshal(object{"apiVersion": p.APIVersion(), "kind": p.Kind.Name, "metadata": inner})
	if err != nil {
		return nil, err
	}
	raw, _, err := r.sendApplyPatch(ctx, p, body, lastAppliedManager, false)
	if err != nil {
		return nil, err
	}
	return parseMeta(raw)
}

// clientSideManagers are the managers that own the annotation of client-side
// applies.
func clientSideManagers(meta *metav1.PartialObjectMetadata) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range csaupgrade.FindFieldsOwners(meta.ManagedFields, metav1.ManagedFieldsOperationUpdate, lastAppliedPath()) {
		names.Insert(entry.Manager)
	}
	return names
}

func lastAppliedPath() *fieldpath.Set {
	return fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", lastApplied))
}

// soleManagerPatch plans to make our manager the only one. What is owned through a
// subresource, as status and an autoscaler's replicas are, stays as it is.
func (r *run) soleManagerPatch(meta *metav1.PartialObjectMetadata) ([]byte, error) {
	names := sets.New[string]()
	renamed := meta.DeepCopy()
	for i, entry := range renamed.ManagedFields {
		isOurs := entry.Manager == r.operator.cfg.Manager && entry.Operation == metav1.ManagedFieldsOperationApply
		if entry.Subresource != "" || isOurs {
			continue
		}
		// A name of its own for each: csaupgrade takes one entry per name.
		name := fmt.Sprintf("%s/%d", entry.Manager, i)
		renamed.ManagedFields[i].Manager, renamed.ManagedFields[i].Operation = name, metav1.ManagedFieldsOperationUpdate
		names.Insert(name)
	}
	if names.Len() == 0 {
		return nil, nil
	}
	return csaupgrade.UpgradeManagedFieldsPatch(renamed, names, r.operator.cfg.Manager)
}

// parseMeta reads an object's metadata.
func parseMeta(raw []byte) (*metav1.PartialObjectMetadata, error) {
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the metadata that the cluster sent makes no sense: %w", err)
	}
	return &meta, nil
}

// clearPreconditionsIfMissing removes the preconditions of a manifest whose object does not
// exist, so that it can be created. If that is unknown, the next request reports why.
func (r *run) clearPreconditionsIfMissing(ctx context.Context, p resourcePath, m manifest.Manifest) {
	if !m.HasPreconditions() {
		return
	}
	if _, _, err := r.do(ctx, p, request{accept: withFullObjectFallback(p, acceptMetadata)}); isNotFound(err) {
		m.ClearPreconditions()
	}
}
