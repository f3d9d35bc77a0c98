package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// rolloutManager is kubectl's field manager of a restart, a pause and a resume. It has no
// name for an undo, nor for scaling, and API servers take that of its program then.
const rolloutManager = "kubectl-rollout"

// restartedAtAnnotation is the annotation of a template whose change rolls pods out anew.
const restartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// getWorkload finds an object that rolls out pods, and reads it.
func (o *Operator) getWorkload(ctx context.Context, t vedette.Target, action string, kinds ...string) (resourcePath, object, error) {
	p, err := o.resolveObject(ctx, t)
	if err != nil {
		return p, nil, err
	}
	if p.Kind.Group != "apps" || !slices.Contains(kinds, p.Kind.Name) {
		return p, nil, vedette.Errorf(vedette.Invalid, "%s.%s %q: %s is not supported", p.Plural, p.Kind.Group, p.name, action)
	}
	raw, _, err := o.do(ctx, p, request{})
	if err != nil {
		return p, nil, err
	}
	tree, err := parseObject(raw, "object")
	return p, tree, err
}

// restart rolls the same pods out once more.
func (o *Operator) restart(ctx context.Context, t vedette.Target) result {
	p, tree, err := o.getWorkload(ctx, t, "restarting", "Deployment", "StatefulSet", "DaemonSet")
	if err != nil {
		return errorResult(err)
	}
	if nested(tree, "spec", "paused") == true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s is paused: resume it before a restart", p.key()))
	}
	now := time.Now().Format(time.RFC3339)
	if nestedString(tree, "spec", "template", "metadata", "annotations", restartedAtAnnotation) == now {
		// Twice within a second would be once.
		if !sleep(ctx, time.Second) {
			return errorResult(vedette.Errorf(vedette.Unavailable, "%s was restarted within this second", p.key()))
		}
		now = time.Now().Format(time.RFC3339)
	}
	return o.patchSpec(ctx, p, object{"template": object{"metadata": object{"annotations": object{restartedAtAnnotation: now}}}})
}

// pause stops a rollout.
func (o *Operator) pause(ctx context.Context, t vedette.Target) result {
	p, tree, err := o.getWorkload(ctx, t, "pausing", "Deployment")
	if err != nil {
		return errorResult(err)
	}
	if nested(tree, "spec", "paused") == true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s.%s %q is already paused", p.Plural, p.Kind.Group, p.name))
	}
	return o.patchSpec(ctx, p, object{"paused": true})
}

// resume lets a paused rollout go on.
func (o *Operator) resume(ctx context.Context, t vedette.Target) result {
	p, tree, err := o.getWorkload(ctx, t, "resuming", "Deployment")
	if err != nil {
		return errorResult(err)
	}
	if nested(tree, "spec", "paused") != true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s.%s %q is not paused", p.Plural, p.Kind.Group, p.name))
	}
	return o.patchSpec(ctx, p, object{"paused": nil})
}

func (o *Operator) patchSpec(ctx context.Context, p resourcePath, spec object) result {
	body, err := json.Marshal(object{"spec": spec})
	if err != nil {
		return errorResult(err)
	}
	return o.patchRollout(ctx, p, rolloutManager, contentTypeStrategicPatch, body)
}

func (o *Operator) patchRollout(ctx context.Context, p resourcePath, manager, contentType string, body []byte) result {
	raw, status, err := o.do(ctx, p, request{method: http.MethodPatch, contentType: contentType, body: body,
		query: url.Values{"fieldManager": {manager}}, nonIdempotent: contentType == contentTypeJSONPatch})
	if err != nil {
		return errorResult(err)
	}
	return o.objectResult(p, raw, status)
}
