package operate

import (
	"context"

	"github.com/vedette-io/vedette"
)

// recache reads one object in the form that feeds report. If it is gone, the outcome has its key, so
// that the server can delete it.
func (r *run) recache(ctx context.Context, t vedette.Target) result {
	p, err := r.resolveObject(ctx, t)
	if err != nil {
		return errorResult(err)
	}
	raw, status, err := r.do(ctx, p, request{decoding: notDecoded})
	if err != nil {
		return result{Outcome: vedette.Outcome{Keys: []vedette.Key{p.key()}}, err: err}
	}
	obj, err := r.redactObject(p.Resource, raw)
	if err != nil {
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Status: status, CacheObject: r.freshObject(p.Resource, &obj), Keys: []vedette.Key{obj.Key}}}
}
