package operate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
)

// get reads one object.
func (o *Operator) get(ctx context.Context, a vedette.GetArgs) result {
	p, err := o.resolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	raw, status, err := o.do(ctx, p, request{})
	if err != nil {
		return errorResult(err)
	}
	return o.objectResult(p, raw, status)
}

// objectResult is the result that tells one object.
func (o *Operator) objectResult(p resourcePath, raw []byte, status int) result {
	return o.objectResultSince(p, raw, status, "")
}

// objectResultSince is told, of an object whose version was known before it was written;
// empty where it was not.
func (o *Operator) objectResultSince(p resourcePath, raw []byte, status int, previousVersion string) result {
	obj, err := o.redactObject(p.Resource, raw)
	if err != nil {
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Status: status, Objects: []json.RawMessage{obj.Body}, Keys: []vedette.Key{obj.Key}, CacheObject: o.freshObject(p.Resource, &obj),
		Unchanged: previousVersion != "" && previousVersion == obj.ResourceVersion}}
}

// freshObject is an object where a feed tells it too, and nil where none does: nobody
// would ever tell that it is gone.
func (o *Operator) freshObject(r vedette.Resource, obj *vedette.Object) *vedette.Object {
	if o.cfg.CoveredByFeed != nil && !o.cfg.CoveredByFeed(r, obj) {
		return nil
	}
	return obj
}

// redactObject is an object as it may leave.
func (o *Operator) redactObject(r vedette.Resource, raw []byte) (vedette.Object, error) {
	obj, _, err := o.redactor.Load().Object(nil, r, raw)
	if err != nil {
		return obj, fmt.Errorf("redact a %s: %w", r.Kind, err)
	}
	return obj, nil
}
