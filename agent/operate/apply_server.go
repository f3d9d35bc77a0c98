package operate

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/disclosure"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// applyServerSide lets the API server merge a manifest. It takes over the fields of earlier
// client-side applies, because fields of another manager would remain when the manifest drops them.
func (r *run) applyServerSide(ctx context.Context, p request.Path, m manifest.Manifest, opts apply.Options, compare bool) result {
	delete(m.Meta(), "managedFields") // copied from a live object; the API server would reject it
	r.clearPreconditionsIfMissing(ctx, p, m)
	r.setDigest(ctx, p, m)
	body, previousVersion := m.Encode(), ""
	if compare {
		previousVersion = r.LiveVersion(ctx, p)
	}
	raw, status, err := r.sendApplyPatch(ctx, p, body, r.operator.cfg.Manager, opts.Force)
	if err != nil {
		return errorResult(err)
	}
	if r.IsDryRun() { // the rest needs an apply that took effect
		return r.objectResult(p, raw, status)
	}
	reapplied, err := r.takeOverAndReapply(ctx, p, raw, body, opts)
	switch {
	case err != nil && opts.ClearManagedFields: // it was requested, so it must not fail silently
		return errorResult(err)
	case err != nil:
		r.Warnings.Add(err.Error())
	case reapplied != nil:
		raw = reapplied
	}
	return r.objectResultSince(p, raw, status, previousVersion)
}

// takeOverAndReapply takes over the fields of earlier managers. If there were any, it applies again,
// to remove those that the manifest does not have, and returns the object; otherwise nil. If it
// fails, the first apply has already taken effect.
func (r *run) takeOverAndReapply(ctx context.Context, p request.Path, applied, body []byte, opts apply.Options) ([]byte, error) {
	changed, err := r.takeOverFields(ctx, p, applied, opts)
	if err != nil {
		return nil, fmt.Errorf("%s was applied, but the fields of its earlier managers could not be taken over, so fields that the manifest no longer has may remain; the next apply retries: %w", p.Key(), err)
	}
	if !changed {
		return nil, nil
	}
	raw, _, err := r.sendApplyPatch(ctx, p, body, r.operator.cfg.Manager, opts.Force || opts.ClearManagedFields)
	if err != nil {
		return nil, fmt.Errorf("%s was applied, but fields that the manifest no longer has could not be removed; apply it again: %w", p.Key(),
			err)
	}
	return raw, nil
}

func (r *run) sendApplyPatch(ctx context.Context, p request.Path, body []byte, manager string, force bool) ([]byte, int, error) {
	var query url.Values
	if force {
		query = url.Values{"force": {"true"}}
	}
	var raw []byte
	var status int
	err := r.RetryOnConflict(ctx, func() error {
		req := request.Request{Method: http.MethodPatch, ContentType: request.ContentTypeApplyPatch, Query: query, Body: body,
			FieldManager: manager, IsManifest: true}
		err := disclosure.CheckApply(ctx, r.Sender, p, &req)
		if err != nil {
			return err
		}
		raw, status, err = r.Do(ctx, p, req)
		if statusErr := request.AsStatusError(err); statusErr != nil {
			explainWrongType(statusErr, p)
		}
		return err
	})
	return raw, status, err
}

// takeOverFields moves the fields of client-side applies, or of all managers if opts says so, to the
// manager of server-side applies. It reports whether there were any.
func (r *run) takeOverFields(ctx context.Context, p request.Path, raw []byte, opts apply.Options) (bool, error) {
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
func (r *run) patchManagedFields(ctx context.Context, p request.Path, meta *metav1.PartialObjectMetadata,
	makePatch func(*metav1.PartialObjectMetadata) ([]byte, error)) (changed bool, err error) {
	err = r.RetryOnConflict(ctx, func() error {
		patch, err := makePatch(meta)
		if err != nil || patch == nil {
			return err
		}
		_, _, err = r.Do(ctx, p, request.Request{Method: http.MethodPatch, ContentType: request.ContentTypeJSONPatch, Body: patch,
			Accept: request.AcceptMetadata})
		changed = err == nil
		if !request.IsConflict(err) {
			return err
		}
		raw, _, readErr := r.Do(ctx, p, request.Request{Accept: request.AcceptMetadata})
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
func (r *run) keepLastApplied(ctx context.Context, p request.Path, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata,
	error) {
	body, err := apply.LastAppliedManifest(meta, p.Key(), p.APIVersion(), r.operator.cfg.Manager)
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
func (r *run) clearPreconditionsIfMissing(ctx context.Context, p request.Path, m manifest.Manifest) {
	if !m.HasPreconditions() {
		return
	}
	if _, _, err := r.Do(ctx, p, request.Request{Accept: p.MetadataAcceptHeader()}); request.IsNotFound(err) {
		m.ClearPreconditions()
	}
}
