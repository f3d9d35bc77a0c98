package operate

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
)

// replaceManager is kubectl's field manager of a replace.
const replaceManager = "kubectl-replace"

// replace puts a manifest in the place of what is there, or creates it. A
// manifest that says a resourceVersion replaces that version only.
func (o *Operator) replace(ctx context.Context, p place, m manifest) result {
	delete(m.meta(), "managedFields")
	o.mark(ctx, p, m)
	pinned := m.meta()["resourceVersion"] != nil
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
			return false, o.post(ctx, p, m.raw(), "kubectl-create", false)
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

// recreate deletes what is there, waits until it is gone, and applies.
func (o *Operator) recreate(ctx context.Context, p place, m manifest) result {
	gone := o.deleteOne(ctx, p, vedette.DeleteArgs{MissingOK: true, NoWait: isDry(ctx)})
	if gone.err != nil {
		return gone
	}
	delete(m.meta(), "resourceVersion")
	delete(m.meta(), "uid")
	if isDry(ctx) && len(gone.Keys) > 0 {
		return o.createBeside(ctx, p, m)
	}
	return o.applyByMode(ctx, p, m, vedette.ApplyArgs{Strategy: vedette.ByMode})
}
