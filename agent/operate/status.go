package operate

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
)

// status tells how far a rollout is, as kubectl rollout status judges it.
func (o *Operator) status(ctx context.Context, t vedette.Target) result {
	p, tree, err := o.workload(ctx, t, "status", "Deployment", "StatefulSet", "DaemonSet")
	if err != nil {
		return failed(err)
	}
	return telling(rolloutStatus(p, tree))
}

func rolloutStatus(p place, tree object) vedette.RolloutStatus {
	w := workloadState{name: p.name, tree: tree}
	if observed := w.status("observedGeneration"); observed == 0 || number(tree, "metadata", "generation") > observed {
		return waiting("the change of its spec is not observed yet")
	}
	switch p.Kind.Name {
	case "Deployment":
		return w.deployment()
	case "DaemonSet":
		return w.daemonSet()
	}
	return w.statefulSet()
}

// workloadState reads numbers out of a workload; what is missing is 0.
type workloadState struct {
	name string
	tree object
}

func (w workloadState) status(field string) int64 { return number(w.tree, "status", field) }

func (w workloadState) rolls() bool {
	return text(w.tree, "spec", "updateStrategy", "type") == "RollingUpdate"
}

func number(from any, path ...string) int64 {
	n, _ := dig(from, path...).(int64)
	return n
}

func waiting(format string, args ...any) vedette.RolloutStatus {
	return vedette.RolloutStatus{Message: fmt.Sprintf(format, args...)}
}

func settledAs(format string, args ...any) vedette.RolloutStatus {
	return vedette.RolloutStatus{Done: true, Message: fmt.Sprintf(format, args...)}
}

func (w workloadState) deployment() vedette.RolloutStatus {
	conditions, _ := dig(w.tree, "status", "conditions").([]any)
	for _, c := range conditions {
		if text(c, "type") == "Progressing" && text(c, "reason") == "ProgressDeadlineExceeded" {
			return vedette.RolloutStatus{Failed: true, Message: fmt.Sprintf("deployment %q exceeded its progress deadline", w.name)}
		}
	}
	wanted, updated := number(w.tree, "spec", "replicas"), w.status("updatedReplicas")
	switch all, available := w.status("replicas"), w.status("availableReplicas"); {
	case updated < wanted:
		return waiting("%d of %d new replicas have been updated", updated, wanted)
	case all > updated:
		return waiting("%d old replicas are pending termination", all-updated)
	case available < updated:
		return waiting("%d of %d updated replicas are available", available, updated)
	}
	return settledAs("deployment %q successfully rolled out", w.name)
}

func (w workloadState) daemonSet() vedette.RolloutStatus {
	wanted, updated, available := w.status("desiredNumberScheduled"), w.status("updatedNumberScheduled"), w.status("numberAvailable")
	switch {
	case !w.rolls():
		return settledAs("daemon set %q is updated only as its pods are deleted", w.name)
	case updated < wanted:
		return waiting("%d of %d new pods have been updated", updated, wanted)
	case available < wanted:
		return waiting("%d of %d updated pods are available", available, wanted)
	}
	return settledAs("daemon set %q successfully rolled out", w.name)
}

func (w workloadState) statefulSet() vedette.RolloutStatus {
	wanted, ready, updated := number(w.tree, "spec", "replicas"), w.status("readyReplicas"), w.status("updatedReplicas")
	partition, rolling := dig(w.tree, "spec", "updateStrategy", "rollingUpdate").(object)
	from := number(partition, "partition")
	switch {
	case !w.rolls():
		return settledAs("stateful set %q is updated only as its pods are deleted", w.name)
	case ready < wanted:
		return waiting("%d pods are not ready", wanted-ready)
	case rolling && updated < wanted-from:
		return waiting("%d of %d new pods of the partition have been updated", updated, wanted-from)
	case rolling:
		return settledAs("stateful set %q rolled out: %d new pods have been updated", w.name, updated)
	case text(w.tree, "status", "updateRevision") != text(w.tree, "status", "currentRevision"):
		return waiting("%d pods are at revision %s", updated, text(w.tree, "status", "updateRevision"))
	}
	return settledAs("stateful set %q successfully rolled out", w.name)
}
