package operate

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// replaceManager is kubectl's field manager of a replace.
const replaceManager = "kubectl-replace"

// replace puts a manifest in the place of what is there, or creates it. A
// manifest that says a resourceVersion replaces that version only.
func (r *run) replace(ctx context.Context, p resourcePath, m manifest.Manifest) result {
	delete(m.Meta(), "managedFields")
	r.setDigest(ctx, p, m)
	r.clearPreconditionsIfMissing(ctx, p, m)
	hasVersion := m.Meta()["resourceVersion"] != nil // a uid alone says nothing of the version
	var res result
	try := func() error {
		var existed bool
		existed, res = r.replaceOnce(ctx, p, m, hasVersion)
		return asConflict(existed, res.err)
	}
	if hasVersion {
		_ = try() // another version is there, and will be
		return res
	}
	if err := r.retryOnConflict(ctx, try); err != nil {
		return errorResult(err)
	}
	return res
}

// replaceOnce reports whether there was something to replace.
func (r *run) replaceOnce(ctx context.Context, p resourcePath, m manifest.Manifest, hasVersion bool) (existed bool, res result) {
	if !hasVersion {
		current, err := r.getLive(ctx, p)
		if err != nil {
			return true, errorResult(err)
		}
		if current == nil {
			return false, r.createObject(ctx, p, m.Object, "kubectl-create", false)
		}
		m.Meta()["resourceVersion"] = current.version
		defer delete(m.Meta(), "resourceVersion")
	}
	raw, status, err := r.do(ctx, p, request{method: http.MethodPut, contentType: contentTypeJSON, body: m.Encode(),
		query: url.Values{"fieldManager": {replaceManager}}, isManifest: true})
	if err != nil {
		return true, errorResult(err)
	}
	previousVersion, _ := m.Meta()["resourceVersion"].(string)
	return true, r.objectResultSince(p, raw, status, previousVersion)
}

// recreate deletes what is there, waits until it is gone, and applies. A manifest that
// no API server would take is refused before, while the object is still there.
func (r *run) recreate(ctx context.Context, p resourcePath, m manifest.Manifest) result {
	m.ClearPreconditions()
	toCreate := m
	if !r.applyOptionsFor(p, m, vedette.StrategyDefault).ServerSide {
		toCreate.Object = manifest.WithoutNulls(m.Object) // as it will be created
	}
	if err := r.dryRunCreate(ctx, p, toCreate); err != nil {
		return errorResult(err)
	}
	deleted := r.deleteOne(ctx, p, vedette.DeleteArgs{MissingOK: true, NoWait: r.dryRun})
	if deleted.err != nil {
		return deleted
	}
	if r.dryRun && len(deleted.Keys) > 0 {
		return r.previewRecreate(ctx, p, toCreate)
	}
	return r.applyByMode(ctx, p, m, defaultApplyArgs)
}

// defaultApplyArgs is how a manifest is applied where nobody says how.
var defaultApplyArgs = vedette.ApplyArgs{Strategy: vedette.StrategyDefault}

// dryRunCreate has the API server judge the creation of an object that may be there
// still, and returns what stands against the manifest itself.
func (r *run) dryRunCreate(ctx context.Context, p resourcePath, m manifest.Manifest) error {
	if r.dryRun {
		return nil // all of it is one
	}
	_, _, err := r.asDryRun().do(ctx, p.collection(), request{method: http.MethodPost, contentType: contentTypeJSON, body: m.Encode(),
		query: url.Values{"fieldManager": {r.operator.cfg.Manager}}, accept: p.acceptHeader(), isManifest: true})
	if statusErr := asStatusError(err); statusErr != nil && statusErr.isInvalidManifest(p.Kind) {
		return err
	}
	return nil
}

// serviceKind is told as invalid, too, where another Service has its address or port.
var serviceKind = vedette.Kind{Name: "Service"}

// isInvalidManifest reports whether a creation was refused for what the manifest says. That the
// name is taken, a quota used up, or that the API server may not be asked, tells
// nothing of what will be once the object is gone; nor does what a webhook says, which
// may have looked at it.
func (r *statusError) isInvalidManifest(k vedette.Kind) bool {
	if strings.HasPrefix(r.Message, "admission webhook ") {
		return false
	}
	return r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity && k != serviceKind
}
