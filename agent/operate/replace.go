package operate

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
)

// replaceManager is kubectl's field manager of a replace.
const replaceManager = "kubectl-replace"

// replace puts a manifest in the place of what is there, or creates it. A
// manifest that says a resourceVersion replaces that version only.
func (o *Operator) replace(ctx context.Context, p resourcePath, m manifest) result {
	delete(m.meta(), "managedFields")
	o.setDigest(ctx, p, m)
	o.clearPreconditionsIfMissing(ctx, p, m)
	hasVersion := m.meta()["resourceVersion"] != nil // a uid alone says nothing of the version
	var r result
	try := func() error {
		var existed bool
		existed, r = o.replaceOnce(ctx, p, m, hasVersion)
		return asConflict(existed, r.err)
	}
	if hasVersion {
		_ = try() // another version is there, and will be
		return r
	}
	if err := o.retryOnConflict(ctx, try); err != nil {
		return errorResult(err)
	}
	return r
}

// replaceOnce reports whether there was something to replace.
func (o *Operator) replaceOnce(ctx context.Context, p resourcePath, m manifest, hasVersion bool) (existed bool, r result) {
	if !hasVersion {
		current, err := o.getLive(ctx, p)
		if err != nil {
			return true, errorResult(err)
		}
		if current == nil {
			return false, o.createObject(ctx, p, m.object, "kubectl-create", false)
		}
		m.meta()["resourceVersion"] = current.version
		defer delete(m.meta(), "resourceVersion")
	}
	raw, status, err := o.do(ctx, p, request{method: http.MethodPut, contentType: contentTypeJSON, body: m.encode(),
		query: url.Values{"fieldManager": {replaceManager}}, isManifest: true})
	if err != nil {
		return true, errorResult(err)
	}
	previousVersion, _ := m.meta()["resourceVersion"].(string)
	return true, o.objectResultSince(p, raw, status, previousVersion)
}

// recreate deletes what is there, waits until it is gone, and applies. A manifest that
// no API server would take is refused before, while the object is still there.
func (o *Operator) recreate(ctx context.Context, p resourcePath, m manifest) result {
	m.clearPreconditions()
	toCreate := m
	if !o.applyOptionsFor(p, m, defaultApplyArgs).serverSide {
		toCreate.object = withoutNulls(m.object).(object) // as it will be created
	}
	if err := o.dryRunCreate(ctx, p, toCreate); err != nil {
		return errorResult(err)
	}
	deleted := o.deleteOne(ctx, p, vedette.DeleteArgs{MissingOK: true, NoWait: isDryRun(ctx)})
	if deleted.err != nil {
		return deleted
	}
	if isDryRun(ctx) && len(deleted.Keys) > 0 {
		return o.previewRecreate(ctx, p, toCreate)
	}
	return o.applyByMode(ctx, p, m, defaultApplyArgs)
}

// defaultApplyArgs is how a manifest is applied where nobody says how.
var defaultApplyArgs = vedette.ApplyArgs{Strategy: vedette.StrategyDefault}

// dryRunCreate has the API server judge the creation of an object that may be there
// still, and returns what stands against the manifest itself.
func (o *Operator) dryRunCreate(ctx context.Context, p resourcePath, m manifest) error {
	if isDryRun(ctx) {
		return nil // all of it is one
	}
	_, _, err := o.do(withDryRun(ctx), p.collection(), request{method: http.MethodPost, contentType: contentTypeJSON, body: m.encode(),
		query: url.Values{"fieldManager": {o.cfg.Manager}}, accept: p.acceptHeader(), isManifest: true})
	if r := asStatusError(err); r != nil && r.isInvalidManifest(p.Kind) {
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
