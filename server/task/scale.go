package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
)

// scaleOp scales a workload: scaleManifest.
type scaleOp struct {
	commonFields
	targetFields
	Replicas optionalInt `json:"replicas"` // missing means 0, as in Clouddriver
}

func (d *scaleOp) check(v *validation) { v.checkTarget(d.target()) }

func (d *scaleOp) run(ctx context.Context, t *opContext) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.reportf("Starting scale operation in account %s...", t.account())
	t.reportf("Looking up resource properties...")
	if err := t.requireKind(target, "scale", "deployment", "replicaSet", "statefulSet"); err != nil {
		return nil, err
	}
	t.reportf("Calling scale operation for %s in namespace %s with replicas %d...", target.name, target.namespace, d.Replicas.orZero())
	if err := t.setReplicas(ctx, target, d.Replicas.orZero()); err != nil {
		return nil, err
	}
	t.reportf("Scale operation completed successfully")
	return nil, nil
}

// requireKind rejects kinds that Clouddriver does not support for a verb.
func (t *opContext) requireKind(target objectRef, verb string, kinds ...string) error {
	if !slices.Contains(kinds, target.displayKind) {
		return illegalArgument(fmt.Sprintf("Resource with %s does not support %s", target, verb))
	}
	return nil
}

func (t *opContext) setReplicas(ctx context.Context, target objectRef, replicas int64) error {
	object := kubectlName(target.args())
	_, err := t.change(ctx, clusterChange{object: object, failurePrefix: fmt.Sprintf("Failed to scale %s from %s: ", object, target.namespace),
		args: vedette.ScaleArgs{Target: target.args(), Replicas: replicas}, timeout: t.tasks.cfg.Timeout})
	return err
}
