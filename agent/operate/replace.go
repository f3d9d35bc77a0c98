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
func (o *Operator) replace(ctx context.Context, p place, m manifest) result {
	delete(m.meta(), "managedFields")
	o.mark(ctx, p, m)
	o.unpinMissing(ctx, p, m)
	pinned := m.meta()["resourceVersion"] != nil // a uid alone says nothing of the version
	var r result
	try := func() error {
		var there bool
		there, r = o.replaceOnce(ctx, p, m, pinned)
		return raced(there, r.err)
	}
	if pinned {
		_ = try() // another version is there, and will be
		return r
	}
	if err := o.contend(ctx, try); err != nil {
		return failed(err)
	}
	return r
}

// replaceOnce reports whether there was something to replace.
func (o *Operator) replaceOnce(ctx context.Context, p place, m manifest, pinned bool) (there bool, r result) {
	if !pinned {
		at, err := o.live(ctx, p)
		if err != nil {
			return true, failed(err)
		}
		if at == nil {
			return false, o.post(ctx, p, m.object, "kubectl-create", false)
		}
		m.meta()["resourceVersion"] = at.version
		defer delete(m.meta(), "resourceVersion")
	}
	raw, status, err := o.do(ctx, p, call{method: http.MethodPut, contentType: typeJSON, body: m.raw(),
		query: url.Values{"fieldManager": {replaceManager}}, manifest: true})
	if err != nil {
		return true, failed(err)
	}
	before, _ := m.meta()["resourceVersion"].(string)
	return true, o.toldSince(p, raw, status, before)
}

// recreate deletes what is there, waits until it is gone, and applies. A manifest that
// no API server would take is refused before, while the object is still there.
func (o *Operator) recreate(ctx context.Context, p place, m manifest) result {
	m.unpin()
	fresh := m
	if !o.way(p, m, byMode).serverSide {
		fresh.object = withoutNulls(m.object).(object) // as it will be created
	}
	if err := o.rehearse(ctx, p, fresh); err != nil {
		return failed(err)
	}
	gone := o.deleteOne(ctx, p, vedette.DeleteArgs{MissingOK: true, NoWait: isDry(ctx)})
	if gone.err != nil {
		return gone
	}
	if isDry(ctx) && len(gone.Keys) > 0 {
		return o.createBeside(ctx, p, fresh)
	}
	return o.applyByMode(ctx, p, m, byMode)
}

// byMode is how a manifest is applied where nobody says how.
var byMode = vedette.ApplyArgs{Strategy: vedette.ByMode}

// rehearse has the API server judge the creation of an object that may be there
// still, and returns what stands against the manifest itself.
func (o *Operator) rehearse(ctx context.Context, p place, m manifest) error {
	if isDry(ctx) {
		return nil // all of it is one
	}
	_, _, err := o.do(withDryRun(ctx), p.list(), call{method: http.MethodPost, contentType: typeJSON, body: m.raw(),
		query: url.Values{"fieldManager": {o.cfg.Manager}}, accept: p.accept(), manifest: true})
	if r := refusalOf(err); r != nil && r.faults(p.Kind) {
		return err
	}
	return nil
}

// serviceKind is told as invalid, too, where another Service has its address or port.
var serviceKind = vedette.Kind{Name: "Service"}

// faults reports whether a creation was refused for what the manifest says. That the
// name is taken, a quota used up, or that the API server may not be asked, tells
// nothing of what will be once the object is gone; nor does what a webhook says, which
// may have looked at it.
func (r *refusal) faults(k vedette.Kind) bool {
	if strings.HasPrefix(r.Message, "admission webhook ") {
		return false
	}
	return r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity && k != serviceKind
}
