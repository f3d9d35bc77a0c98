package operate

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// status returns the progress of a rollout, by the rules of kubectl rollout status.
func (r *run) status(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "status", "Deployment", "StatefulSet", "DaemonSet")
	if err != nil {
		return errorResult(err)
	}
	return jsonResult(rolloutStatus(p, tree))
}

func rolloutStatus(p request.Path, tree object) vedette.RolloutStatus {
	w := workloadState{name: p.Name, tree: tree}
	if observed := w.status("observedGeneration"); observed == 0 || nestedInt64(tree, "metadata", "generation") > observed {
		return rolloutInProgress("the change of its spec is not observed yet")
	}
	switch p.Kind.Name {
	case "Deployment":
		return w.deployment()
	case "DaemonSet":
		return w.daemonSet()
	}
	return w.statefulSet()
}

// workloadState reads the numbers of a workload; a missing one is 0.
type workloadState struct {
	name string
	tree object
}

func (w workloadState) status(field string) int64 { return nestedInt64(w.tree, "status", field) }

func (w workloadState) isRollingUpdate() bool {
	return manifest.NestedString(w.tree, "spec", "updateStrategy", "type") == "RollingUpdate"
}

func nestedInt64(from any, path ...string) int64 {
	n, _ := manifest.Nested(from, path...).(int64)
	return n
}

func rolloutInProgress(format string, args ...any) vedette.RolloutStatus {
	return vedette.RolloutStatus{Message: fmt.Sprintf(format, args...)}
}

func rolloutDone(format string, args ...any) vedette.RolloutStatus {
	return vedette.RolloutStatus{Done: true, Message: fmt.Sprintf(format, args...)}
}

func (w workloadState) deployment() vedette.RolloutStatus {
	conditions, _ := manifest.Nested(w.tree, "status", "conditions").([]any)
	for _, c := range conditions {
		if manifest.NestedString(c, "type") == "Progressing" && manifest.NestedString(c, "reason") == "ProgressDeadlineExceeded" {
			return vedette.RolloutStatus{Failed: true, Message: fmt.Sprintf("deployment %q exceeded its progress deadline", w.name)}
		}
	}
	desired, updated := nestedInt64(w.tree, "spec", "replicas"), w.status("updatedReplicas")
	switch current, available := w.status("replicas"), w.status("availableReplicas"); {
	case updated < desired:
		return rolloutInProgress("%d of %d new replicas have been updated", updated, desired)
	case current > updated:
		return rolloutInProgress("%d old replicas are pending termination", current-updated)
	case available < updated:
		return rolloutInProgress("%d of %d updated replicas are available", available, updated)
	}
	return rolloutDone("deployment %q successfully rolled out", w.name)
}

func (w workloadState) daemonSet() vedette.RolloutStatus {
	desired := w.status("desiredNumberScheduled")
	updated := w.status("updatedNumberScheduled")
	available := w.status("numberAvailable")
	switch {
	case !w.isRollingUpdate():
		return rolloutDone("daemon set %q is updated only as its pods are deleted", w.name)
	case updated < desired:
		return rolloutInProgress("%d of %d new pods have been updated", updated, desired)
	case available < desired:
		return rolloutInProgress("%d of %d updated pods are available", available, desired)
	}
	return rolloutDone("daemon set %q successfully rolled out", w.name)
}

func (w workloadState) statefulSet() vedette.RolloutStatus {
	desired := nestedInt64(w.tree, "spec", "replicas")
	ready := w.status("readyReplicas")
	updated := w.status("updatedReplicas")
	rollingUpdate, isRollingUpdate := manifest.Nested(w.tree, "spec", "updateStrategy", "rollingUpdate").(object)
	firstOrdinal := nestedInt64(rollingUpdate, "partition")
	switch {
	case !w.isRollingUpdate():
		return rolloutDone("stateful set %q is updated only as its pods are deleted", w.name)
	case ready < desired:
		return rolloutInProgress("%d pods are not ready", desired-ready)
	case isRollingUpdate && updated < desired-firstOrdinal:
		return rolloutInProgress("%d of %d new pods of the partition have been updated", updated, desired-firstOrdinal)
	case isRollingUpdate:
		return rolloutDone("stateful set %q rolled out: %d new pods have been updated", w.name, updated)
	case manifest.NestedString(w.tree, "status", "updateRevision") != manifest.NestedString(w.tree, "status", "currentRevision"):
		return rolloutInProgress("%d pods are at revision %s", updated, manifest.NestedString(w.tree, "status", "updateRevision"))
	}
	return rolloutDone("stateful set %q successfully rolled out", w.name)
}
