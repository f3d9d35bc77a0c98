package operate

import (
	"context"

	"github.com/vedette-io/vedette"
)

// recache reads one object in the form in which feeds tell it. The key of one
// that is gone stands in the outcome that says so.
func (r *run) recache(ctx context.Context, t vedette.Target) result {
	p, err := r.resolveObject(ctx, t)
	if err != nil {
		return errorResult(err)
	}
	raw, status, err := r.do(ctx, p, request{})
	if err != nil {
		return result{Outcome: vedette.Outcome{Keys: []vedette.Key{p.key()}}, err: err}
	}
	obj, err := r.redactObject(p.Resource, raw)
	if err != nil {
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Status: status, CacheObject: r.freshObject(p.Resource, &obj), Keys: []vedette.Key{obj.Key}}}
}
