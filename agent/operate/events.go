package operate

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// events returns the Events of one object, as kubectl describe does. Those of an object that is gone
// are found by kind and name.
func (r *run) events(ctx context.Context, t vedette.Target) result {
	p, err := r.ResolveObject(ctx, t)
	if err != nil {
		return errorResult(err)
	}
	selector := fields.Set{"involvedObject.kind": p.Kind.Name, "involvedObject.name": p.Name}
	meta, err := r.getMeta(ctx, p)
	switch {
	case err == nil:
		selector["involvedObject.uid"] = string(meta.UID)
	case !request.IsNotFound(err):
		return errorResult(err)
	}
	target := vedette.Target{Kind: "Event", APIVersion: "v1", Namespace: cmp.Or(p.Namespace, "default")}
	list, err := r.ResolveTarget(ctx, target)
	if err != nil {
		return errorResult(err)
	}
	return r.listResult(ctx, list, "", selector.AsSelector().String())
}
