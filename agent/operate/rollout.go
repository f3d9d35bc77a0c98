package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// rolloutManager is kubectl's field manager of a restart, a pause and a resume. It has no
// name for an undo, nor for scaling, and API servers take that of its program then.
const rolloutManager = "kubectl-rollout"

// restartedAtAnnotation is the annotation of a template whose change rolls pods out anew.
const restartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// getWorkload finds an object that rolls out pods, and reads it.
func (r *run) getWorkload(ctx context.Context, t vedette.Target, action string, kinds ...string) (resourcePath, object, error) {
	p, err := r.resolveObject(ctx, t)
	if err != nil {
		return p, nil, err
	}
	if p.Kind.Group != "apps" || !slices.Contains(kinds, p.Kind.Name) {
		return p, nil, vedette.Errorf(vedette.Invalid, "%s.%s %q: %s is not supported", p.Plural, p.Kind.Group, p.name, action)
	}
	raw, _, err := r.do(ctx, p, request{})
	if err != nil {
		return p, nil, err
	}
	tree, err := manifest.ParseObject(raw, "object")
	return p, tree, err
}

// restart rolls the same pods out once more.
func (r *run) restart(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "restarting", "Deployment", "StatefulSet", "DaemonSet")
	if err != nil {
		return errorResult(err)
	}
	if manifest.Nested(tree, "spec", "paused") == true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s is paused: resume it before a restart", p.key()))
	}
	now := time.Now().Format(time.RFC3339)
	if manifest.NestedString(tree, "spec", "template", "metadata", "annotations", restartedAtAnnotation) == now {
		// Twice within a second would be once.
		if !sleep(ctx, time.Second) {
			return errorResult(vedette.Errorf(vedette.Unavailable, "%s was restarted within this second", p.key()))
		}
		now = time.Now().Format(time.RFC3339)
	}
	return r.patchSpec(ctx, p, object{"template": object{"metadata": object{"annotations": object{restartedAtAnnotation: now}}}})
}

// pause stops a rollout.
func (r *run) pause(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "pausing", "Deployment")
	if err != nil {
		return errorResult(err)
	}
	if manifest.Nested(tree, "spec", "paused") == true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s.%s %q is already paused", p.Plural, p.Kind.Group, p.name))
	}
	return r.patchSpec(ctx, p, object{"paused": true})
}

// resume lets a paused rollout go on.
func (r *run) resume(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "resuming", "Deployment")
	if err != nil {
		return errorResult(err)
	}
	if manifest.Nested(tree, "spec", "paused") != true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s.%s %q is not paused", p.Plural, p.Kind.Group, p.name))
	}
	return r.patchSpec(ctx, p, object{"paused": nil})
}

func (r *run) patchSpec(ctx context.Context, p resourcePath, spec object) result {
	body, err := json.Marshal(object{"spec": spec})
	if err != nil {
		return errorResult(err)
	}
	return r.patchRollout(ctx, p, rolloutManager, contentTypeStrategicPatch, body)
}

func (r *run) patchRollout(ctx context.Context, p resourcePath, manager, contentType string, body []byte) result {
	raw, status, err := r.do(ctx, p, request{method: http.MethodPatch, contentType: contentType, body: body,
		query: url.Values{"fieldManager": {manager}}, nonIdempotent: contentType == contentTypeJSONPatch})
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}
