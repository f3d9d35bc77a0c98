package operate

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/vedette-io/vedette"
)

// events returns the Events of one object, as kubectl describe does. Those of an object that is gone
// are found by kind and name.
func (r *run) events(ctx context.Context, t vedette.Target) result {
	p, err := r.resolveObject(ctx, t)
	if err != nil {
		return errorResult(err)
	}
	selector := fields.Set{"involvedObject.kind": p.Kind.Name, "involvedObject.name": p.name}
	meta, err := r.getMeta(ctx, p)
	switch {
	case err == nil:
		selector["involvedObject.uid"] = string(meta.UID)
	case !isNotFound(err):
		return errorResult(err)
	}
	target := vedette.Target{Kind: "Event", APIVersion: "v1", Namespace: firstNonEmpty(p.namespace, "default")}
	list, err := r.resolveTarget(ctx, target)
	if err != nil {
		return errorResult(err)
	}
	return r.listResult(ctx, list, "", selector.AsSelector().String())
}
