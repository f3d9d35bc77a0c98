package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// preservedAnnotations keep the Deployment's value in an undo. All others get that of the ReplicaSet.
var preservedAnnotations = []string{
	apply.LastApplied, revisionAnnotation, "deployment.kubernetes.io/revision-history",
	"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", "deprecated.deployment.rollback.to",
}

// undo rolls a workload back to a revision. If it already has its template, nothing changes, and the
// message says so.
func (r *run) undo(ctx context.Context, a vedette.UndoArgs) result {
	p, tree, err := r.getWorkload(ctx, a.Target, "undoing", "Deployment", "StatefulSet", "DaemonSet")
	if err != nil {
		return errorResult(err)
	}
	revisions, err := r.revisions(ctx, p, tree)
	if err != nil {
		return errorResult(err)
	}
	target, err := targetRevision(p, revisions, a)
	if err != nil {
		return errorResult(err)
	}
	if p.Kind.Name == "Deployment" && manifest.Nested(tree, "spec", "paused") == true {
		return errorResult(vedette.Errorf(vedette.Invalid, "%s is paused: resume it before an undo", p.Key()))
	}
	if target.isCurrent {
		return result{Outcome: vedette.Outcome{Message: fmt.Sprintf("skipped rollback (current template already matches revision %d)",
			target.number)}}
	}
	r.warnIfClientSideApplied(p, tree)
	if p.Kind.Name == "Deployment" {
		return r.undoDeployment(ctx, p, tree, target)
	}
	body, err := json.Marshal(manifest.Nested(target.tree, "data"))
	if err != nil {
		return errorResult(err)
	}
	return r.patchRollout(ctx, p, apply.KubectlManager, request.ContentTypeStrategicPatch, body)
}

// warnIfClientSideApplied warns that an undo does not change the last-applied annotation.
func (r *run) warnIfClientSideApplied(p request.Path, tree object) {
	if manifest.NestedString(tree, "metadata", "annotations", apply.LastApplied) != "" {
		r.Warnings.Add(fmt.Sprintf("%s was applied client-side, and an undo does not change its annotation %s: the next apply may keep fields that the undo restored. Apply the earlier manifest instead", p.Key(), apply.LastApplied))
	}
}

// targetRevision returns the revision to roll back to.
func targetRevision(p request.Path, all []revision, a vedette.UndoArgs) (revision, error) {
	switch {
	case a.Revision < 0 || a.RevisionsBack < 0:
		return revision{}, vedette.Errorf(vedette.Invalid, "a revision can't be negative")
	case a.Revision > 0:
		for _, r := range all {
			if r.number == a.Revision {
				return r, nil
			}
		}
		return revision{}, vedette.Errorf(vedette.NotFound, "unable to find specified revision %d in history", a.Revision)
	case a.RevisionsBack >= len(all) && a.RevisionsBack > 0:
		return revision{}, vedette.Errorf(vedette.Invalid, "There are %d revision(s) in total, cannot rollback %d", len(all), a.RevisionsBack)
	case len(all) < 2:
		return revision{}, vedette.Errorf(vedette.NotFound, "no rollout history found for %s: there is no revision before this one", p.Key())
	}
	return all[len(all)-1-max(1, a.RevisionsBack)], nil
}

// undoDeployment replaces the Deployment's template and annotations by those of the ReplicaSet.
func (r *run) undoDeployment(ctx context.Context, p request.Path, tree object, target revision) result {
	annotations := object{}
	replicaSetAnnotations, _ := manifest.Nested(target.tree, "metadata", "annotations").(object)
	for name, value := range replicaSetAnnotations {
		if !slices.Contains(preservedAnnotations, name) {
			annotations[name] = value
		}
	}
	for _, name := range preservedAnnotations {
		if value := manifest.NestedString(tree, "metadata", "annotations", name); value != "" {
			annotations[name] = value
		}
	}
	body, err := json.Marshal([]object{
		{"op": "replace", "path": "/spec/template", "value": templateOf(target.tree)},
		{"op": "add", "path": "/metadata/annotations", "value": annotations},
	})
	if err != nil {
		return errorResult(err)
	}
	return r.patchRollout(ctx, p, apply.KubectlManager, request.ContentTypeJSONPatch, body)
}
