package operate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
)

// get reads one object.
func (o *Operator) get(ctx context.Context, a vedette.GetArgs) result {
	p, err := o.find(ctx, a.Target)
	if err != nil {
		return failed(err)
	}
	raw, status, err := o.do(ctx, p, call{})
	if err != nil {
		return failed(err)
	}
	return o.told(p, raw, status)
}

// told is the result that tells one object.
func (o *Operator) told(p place, raw []byte, status int) result {
	return o.toldSince(p, raw, status, "")
}

// toldSince is told, of an object whose version was known before it was written;
// empty where it was not.
func (o *Operator) toldSince(p place, raw []byte, status int, before string) result {
	obj, err := o.redacted(p.Resource, raw)
	if err != nil {
		return failed(err)
	}
	return result{Outcome: vedette.Outcome{Status: status, Objects: []json.RawMessage{obj.Body}, Keys: []vedette.Key{obj.Key}, Fresh: o.fresh(p.Resource, &obj),
		Unchanged: before != "" && before == obj.ResourceVersion}}
}

// fresh is an object where a feed tells it too, and nil where none does: nobody
// would ever tell that it is gone.
func (o *Operator) fresh(r vedette.Resource, obj *vedette.Object) *vedette.Object {
	if o.cfg.Wanted != nil && !o.cfg.Wanted(r, obj) {
		return nil
	}
	return obj
}

// redacted is an object as it may leave.
func (o *Operator) redacted(r vedette.Resource, raw []byte) (vedette.Object, error) {
	obj, _, err := o.redactor.Load().Object(nil, r, raw)
	if err != nil {
		return obj, fmt.Errorf("redact a %s: %w", r.Kind, err)
	}
	return obj, nil
}
