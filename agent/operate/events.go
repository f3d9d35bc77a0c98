package operate

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/vedette-io/vedette"
)

// events tells the Events of one object, as kubectl describe finds them. An
// object that is gone has Events still, found by kind and name.
func (o *Operator) events(ctx context.Context, t vedette.Target) result {
	p, err := o.find(ctx, t)
	if err != nil {
		return failed(err)
	}
	about := fields.Set{"involvedObject.kind": p.Kind.Name, "involvedObject.name": p.name}
	meta, err := o.meta(ctx, p)
	switch {
	case err == nil:
		about["involvedObject.uid"] = string(meta.UID)
	case !missing(err):
		return failed(err)
	}
	events := vedette.Target{Kind: "Event", APIVersion: "v1", Namespace: firstOf(p.namespace, "default")}
	list, err := o.findAll(ctx, events)
	if err != nil {
		return failed(err)
	}
	items, err := o.all(ctx, list, "", about.AsSelector().String())
	if err != nil {
		return failed(err)
	}
	return o.toldAll(list, items)
}

// toldAll is the result that tells many objects.
func (o *Operator) toldAll(p place, items []json.RawMessage) result {
	var r result
	for _, raw := range items {
		obj, err := o.redacted(p.Resource, raw)
		if err != nil {
			return failed(err)
		}
		r.Objects = append(r.Objects, obj.Body)
	}
	return r
}
