package operate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// rolloutManager is kubectl's field manager for restart, pause and resume. For undo and scale it
// sends none, and API servers use the name of the program.
const rolloutManager = "kubectl-rollout"

// restartedAtAnnotation is changed in the template to restart the pods.
const restartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// getWorkload reads an object of one of the kinds. The action is for the error of other kinds.
func (r *run) getWorkload(ctx context.Context, t vedette.Target, action string, kinds ...string) (request.Path, object, error) {
	p, err := r.ResolveObject(ctx, t)
	if err != nil {
		return p, nil, err
	}
	if p.Kind.Group != "apps" || !slices.Contains(kinds, p.Kind.Name) {
		plural := strings.TrimSuffix(p.Plural+"."+p.Kind.Group, ".")
		return p, nil, vedette.Errorf(vedette.Invalid, "%s %q: %s is not supported", plural, p.Name, action)
	}
	raw, _, err := r.Do(ctx, p, request.Request{})
	if err != nil {
		return p, nil, err
	}
	tree, err := manifest.ParseObject(raw, "object")
	return p, tree, err
}

// restart replaces the pods of a workload by equal ones.
func (r *run) restart(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "restarting", "Deployment", "StatefulSet", "DaemonSet")
	if err != nil {
		return errorResult(err)
	}
	if manifest.Nested(tree, "spec", "paused") == true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s is paused: resume it before a restart", p.Key()))
	}
	now := time.Now().Format(time.RFC3339)
	if manifest.NestedString(tree, "spec", "template", "metadata", "annotations", restartedAtAnnotation) == now {
		// The annotation has seconds, so a second restart within one would have no effect.
		if !request.Sleep(ctx, time.Second) {
			return errorResult(vedette.Errorf(vedette.Unavailable, "%s was restarted less than a second ago: try again", p.Key()))
		}
		now = time.Now().Format(time.RFC3339)
	}
	return r.patchSpec(ctx, p, object{"template": object{"metadata": object{"annotations": object{restartedAtAnnotation: now}}}})
}

func (r *run) pause(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "pausing", "Deployment")
	if err != nil {
		return errorResult(err)
	}
	if manifest.Nested(tree, "spec", "paused") == true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s.%s %q is already paused", p.Plural, p.Kind.Group, p.Name))
	}
	return r.patchSpec(ctx, p, object{"paused": true})
}

func (r *run) resume(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "resuming", "Deployment")
	if err != nil {
		return errorResult(err)
	}
	if manifest.Nested(tree, "spec", "paused") != true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s.%s %q is not paused", p.Plural, p.Kind.Group, p.Name))
	}
	return r.patchSpec(ctx, p, object{"paused": nil})
}

func (r *run) patchSpec(ctx context.Context, p request.Path, spec object) result {
	body, err := json.Marshal(object{"spec": spec})
	if err != nil {
		return errorResult(err)
	}
	return r.patchRollout(ctx, p, rolloutManager, request.ContentTypeStrategicPatch, body)
}

func (r *run) patchRollout(ctx context.Context, p request.Path, manager, contentType string, body []byte) result {
	raw, status, err := r.patchObject(ctx, p, manager, contentType, body)
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}
