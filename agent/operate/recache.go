package operate

import (
	"context"

	"github.com/vedette-io/vedette"
)

// recache reads one object in the form in which feeds tell it. The key of one
// that is gone stands in the outcome that says so.
func (o *Operator) recache(ctx context.Context, t vedette.Target) result {
	p, err := o.find(ctx, t)
	if err != nil {
		return failed(err)
	}
	raw, status, err := o.do(ctx, p, call{})
	if err != nil {
		return result{Outcome: vedette.Outcome{Keys: []vedette.Key{p.key()}}, err: err}
	}
	obj, err := o.redacted(p.Resource, raw)
	if err != nil {
		return failed(err)
	}
	return result{Outcome: vedette.Outcome{Status: status, Fresh: o.fresh(p.Resource, &obj), Keys: []vedette.Key{obj.Key}}}
}
