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
	pinned := m.meta()["resourceVersion"] != nil
	var r result
	try := func() error {
		r = o.replaceOnce(ctx, p, m, pinned)
		return r.err
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

func (o *Operator) replaceOnce(ctx context.Context, p place, m manifest, pinned bool) result {
	if !pinned {
		tree, _, err := o.live(ctx, p)
		if err != nil {
			return failed(err)
		}
		if tree == nil {
			return o.post(ctx, p, m.raw(), "kubectl-create", false)
		}
		m.meta()["resourceVersion"] = text(tree, "metadata", "resourceVersion")
		defer delete(m.meta(), "resourceVersion")
	}
	raw, status, err := o.do(ctx, p, call{method: http.MethodPut, contentType: typeJSON, body: m.raw(),
		query: url.Values{"fieldManager": {replaceManager}}})
	if err != nil {
		return failed(err)
	}
	return o.told(p, raw, status)
}

// recreate deletes what is there, waits until it is gone, and applies.
func (o *Operator) recreate(ctx context.Context, p place, m manifest) result {
	gone := o.deleteOne(ctx, p, vedette.DeleteArgs{MissingOK: true})
	if gone.err != nil {
		return gone
	}
	delete(m.meta(), "resourceVersion")
	delete(m.meta(), "uid")
	return o.applyByMode(ctx, p, m, vedette.ByMode)
}
