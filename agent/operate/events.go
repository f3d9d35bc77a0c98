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
	p, err := o.resolveObject(ctx, t)
	if err != nil {
		return errorResult(err)
	}
	selector := fields.Set{"involvedObject.kind": p.Kind.Name, "involvedObject.name": p.name}
	meta, err := o.getMeta(ctx, p)
	switch {
	case err == nil:
		selector["involvedObject.uid"] = string(meta.UID)
	case !isNotFound(err):
		return errorResult(err)
	}
	target := vedette.Target{Kind: "Event", APIVersion: "v1", Namespace: firstNonEmpty(p.namespace, "default")}
	list, err := o.resolveTarget(ctx, target)
	if err != nil {
		return errorResult(err)
	}
	items, err := o.listAll(ctx, list, "", selector.AsSelector().String())
	if err != nil {
		return errorResult(err)
	}
	return o.listResult(list, items)
}

// listResult is the result that tells many objects.
func (o *Operator) listResult(p resourcePath, items []json.RawMessage) result {
	var r result
	for _, raw := range items {
		obj, err := o.redactObject(p.Resource, raw)
		if err != nil {
			return errorResult(err)
		}
		r.Objects = append(r.Objects, obj.Body)
	}
	return r
}
