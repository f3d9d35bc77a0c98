package operate

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// replaceManager is kubectl's field manager of a replace.
const replaceManager = "kubectl-replace"

// replace replaces an object by a manifest, or creates it, unless it must exist. A manifest with a
// resourceVersion replaces only that version.
func (r *run) replace(ctx context.Context, p request.Path, m manifest.Manifest, mustExist bool) result {
	delete(m.Meta(), "managedFields")
	r.setDigest(ctx, p, m)
	if !mustExist {
		r.clearPreconditionsIfMissing(ctx, p, m)
	}
	hasVersion := m.Meta()["resourceVersion"] != nil // a uid does not restrict the version
	var res result
	try := func() error {
		var existed bool
		existed, res = r.replaceOnce(ctx, p, m, hasVersion, mustExist)
		return asConflict(existed, res.err)
	}
	if hasVersion {
		_ = try() // a retry would conflict again
		return res
	}
	if err := r.RetryOnConflict(ctx, try); err != nil {
		return errorResult(err)
	}
	return res
}

// replaceOnce also reports whether the object existed.
func (r *run) replaceOnce(ctx context.Context, p request.Path, m manifest.Manifest, hasVersion, mustExist bool) (existed bool, res result) {
	if !hasVersion {
		current, err := r.getLive(ctx, p)
		if err != nil {
			return true, errorResult(err)
		}
		switch {
		case current == nil && mustExist:
			return true, errorResult(r.missing(ctx, p))
		case current == nil:
			return false, r.createObject(ctx, p, m.Object, cmp.Or(r.fieldManager, createManager), false)
		}
		m.Meta()["resourceVersion"] = current.version
		defer delete(m.Meta(), "resourceVersion")
	}
	raw, status, err := r.Do(ctx, p, request.Request{Method: http.MethodPut, Body: m.Encode(),
		FieldManager: cmp.Or(r.fieldManager, replaceManager), IsManifest: true})
	if err != nil {
		return true, errorResult(err)
	}
	previousVersion, _ := m.Meta()["resourceVersion"].(string)
	return true, r.objectResultSince(p, raw, status, previousVersion)
}

// missing returns the API server's error for an object that does not exist.
func (r *run) missing(ctx context.Context, p request.Path) error {
	if _, _, err := r.Do(ctx, p, request.Request{}); err != nil {
		return err
	}
	return request.ChangedMeanwhile(p)
}

// recreate deletes an object, waits until it is gone, and applies the manifest. A manifest that the
// API server would reject is rejected before, while the object still exists.
func (r *run) recreate(ctx context.Context, p request.Path, m manifest.Manifest) result {
	m.ClearPreconditions()
	toCreate := m
	if !r.applyOptionsFor(p, m, vedette.StrategyDefault).ServerSide {
		toCreate.Object = manifest.WithoutNulls(m.Object) // as it will be created
	}
	if err := r.dryRunCreate(ctx, p, toCreate); err != nil {
		return errorResult(err)
	}
	deleted := r.deleteOne(ctx, p, vedette.DeleteArgs{MissingOK: true, NoWait: r.IsDryRun()}, waitHere)
	if deleted.err != nil {
		return deleted
	}
	if r.IsDryRun() && len(deleted.Keys) > 0 {
		return r.previewRecreate(ctx, p, toCreate)
	}
	return r.applyByMode(ctx, p, m, defaultApplyArgs)
}

// defaultApplyArgs apply a manifest by the mode of its kind.
var defaultApplyArgs = vedette.ApplyArgs{Strategy: vedette.StrategyDefault}

// dryRunCreate returns why the API server would reject the manifest, nil if it would not or if that
// is unknown. The object may exist, so other errors are expected.
func (r *run) dryRunCreate(ctx context.Context, p request.Path, m manifest.Manifest) error {
	if r.IsDryRun() {
		return nil // the operation itself is one
	}
	_, _, err := postObject(ctx, r.AsDryRun(), p, m.Object, r.operator.cfg.Manager, false)
	if statusErr := request.AsStatusError(err); statusErr != nil && isInvalidManifest(statusErr, p.Kind) {
		return err
	}
	return nil
}

// serviceKind is also invalid if its address or port is in use, for example by the live object.
var serviceKind = vedette.Kind{Name: "Service"}

// isInvalidManifest reports whether a creation failed because of the manifest. Other errors may
// disappear with the live object: that its name exists, that a quota is used up, and those of
// webhooks, which may have looked at it.
func isInvalidManifest(e *request.StatusError, k vedette.Kind) bool {
	if strings.HasPrefix(e.Message, "admission webhook ") {
		return false
	}
	return e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity && k != serviceKind
}
