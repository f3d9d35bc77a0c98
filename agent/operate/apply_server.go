package operate

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// applyServerSide lets the API server merge a manifest. It takes over the fields of earlier
// client-side applies, because fields of another manager would remain when the manifest drops them.
func (r *run) applyServerSide(ctx context.Context, p resourcePath, m manifest.Manifest, opts apply.Options, compare bool) result {
	delete(m.Meta(), "managedFields") // copied from a live object; the API server would reject it
	r.clearPreconditionsIfMissing(ctx, p, m)
	r.setDigest(ctx, p, m)
	body, previousVersion := m.Encode(), ""
	if compare {
		previousVersion = r.liveVersion(ctx, p)
	}
	raw, status, err := r.sendApplyPatch(ctx, p, body, r.operator.cfg.Manager, opts.Force)
	if err != nil {
		return errorResult(err)
	}
	if r.dryRun { // the rest needs an apply that took effect
		return r.objectResult(p, raw, status)
	}
	reapplied, err := r.takeOverAndReapply(ctx, p, raw, body, opts)
	switch {
	case err != nil && opts.ClearManagedFields: // it was requested, so it must not fail silently
		return errorResult(err)
	case err != nil:
		r.warnings.add(err.Error())
	case reapplied != nil:
		raw = reapplied
	}
	return r.objectResultSince(p, raw, status, previousVersion)
}

// takeOverAndReapply takes over the fields of earlier managers. If there were any, it applies again,
// to remove those that the manifest does not have, and returns the object; otherwise nil. If it
// fails, the first apply has already taken effect.
func (r *run) takeOverAndReapply(ctx context.Context, p resourcePath, applied, body []byte, opts apply.Options) ([]byte, error) {
	changed, err := r.takeOverFields(ctx, p, applied, opts)
	if err != nil {
		return nil, fmt.Errorf("%s was applied, but the fields of its earlier managers could not be taken over, so fields that the manifest no longer has may remain; the next apply retries: %w", p.key(), err)
	}
	if !changed {
		return nil, nil
	}
	raw, _, err := r.sendApplyPatch(ctx, p, body, r.operator.cfg.Manager, opts.Force || opts.ClearManagedFields)
	if err != nil {
		return nil, fmt.Errorf("%s was applied, but fields that the manifest no longer has could not be removed; apply it again: %w", p.key(),
			err)
	}
	return raw, nil
}

// liveVersion returns the resourceVersion of an object, empty if it can't be read. That is not an
// error: the outcome just does not say whether the object changed.
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
	err := r.retryOnConflict(ctx, func() error {
		req := request{method: http.MethodPatch, contentType: contentTypeApplyPatch, query: query, body: body, isManifest: true}
		err := r.checkApplyPatch(ctx, p, &req)
		if err != nil {
			return err
		}
		raw, status, err = r.do(ctx, p, req)
		if statusErr := asStatusError(err); statusErr != nil {
			statusErr.explainWrongType(p)
		}
		return err
	})
	return raw, status, err
}

// takeOverFields moves the fields of client-side applies, or of all managers if opts says so, to the
// manager of server-side applies. It reports whether there were any.
func (r *run) takeOverFields(ctx context.Context, p resourcePath, raw []byte, opts apply.Options) (bool, error) {
	meta, err := parseMeta(raw)
	if err != nil {
		return false, err
	}
	if opts.ClearManagedFields {
		return r.patchManagedFields(ctx, p, meta, func(meta *metav1.PartialObjectMetadata) ([]byte, error) {
			return apply.SoleManagerPatch(meta, r.operator.cfg.Manager)
		})
	}
	owners := apply.ClientSideManagers(meta)
	if owners.Len() == 0 {
		return false, nil
	}
	meta, err = r.keepLastApplied(ctx, p, meta)
	if err != nil {
		return false, err
	}
	return r.patchManagedFields(ctx, p, meta, func(meta *metav1.PartialObjectMetadata) ([]byte, error) {
		return apply.TakeOverPatch(meta, owners, r.operator.cfg.Manager)
	})
}

// patchManagedFields sends the patch that makePatch returns for the metadata. After a conflict it
// reads the metadata again.
func (r *run) patchManagedFields(ctx context.Context, p resourcePath, meta *metav1.PartialObjectMetadata,
	makePatch func(*metav1.PartialObjectMetadata) ([]byte, error)) (changed bool, err error) {
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
		meta, readErr = parseMeta(raw)
		if readErr != nil {
			return readErr
		}
		return err
	})
	return changed, err
}

// keepLastApplied gives the last-applied annotation its own manager if needed. It returns the
// object's new metadata.
func (r *run) keepLastApplied(ctx context.Context, p resourcePath, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata,
	error) {
	body, err := apply.LastAppliedManifest(meta, p.key(), p.APIVersion(), r.operator.cfg.Manager)
	if err != nil || body == nil {
		return meta, err
	}
	raw, _, err := r.sendApplyPatch(ctx, p, body, apply.LastAppliedManager, false)
	if err != nil {
		return nil, err
	}
	return parseMeta(raw)
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
