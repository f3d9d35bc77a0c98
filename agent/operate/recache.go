package operate

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// recache reads one object in the form that feeds report. If it is gone, the outcome says so, and the server
// removes it.
func (r *run) recache(ctx context.Context, t vedette.Target) result {
	p, err := r.ResolveObject(ctx, t)
	if err != nil {
		return errorResult(err)
	}
	raw, status, err := r.Do(ctx, p, request.Request{Decoding: request.NotDecoded})
	if err != nil {
		res := result{Outcome: vedette.Outcome{Keys: []vedette.Key{p.Key()}}, err: err}
		if isObjectMissing(err) {
			res.Absent = r.absence(ctx, p)
		}
		return res
	}
	obj, err := r.Redact(p.Resource, raw)
	if err != nil {
		return errorResult(err)
	}
	res := result{Outcome: vedette.Outcome{Status: status, Keys: []vedette.Key{obj.Key}}}
	res.CacheObject, res.Awaited = r.freshObject(p.Resource, &obj)
	return res
}
