package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
)

// scale sets the number of replicas of a workload: scaleManifest.
type scale struct {
	common
	targeted
	Replicas number `json:"replicas"`
}

func (d *scale) check(v *validation) {
	if v.target(d.target()) && d.Replicas.n == nil {
		v.reject("replicas", "empty")
	}
}

func (d *scale) run(ctx context.Context, t *turn) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.say("Starting scale operation in account %s...", t.account())
	t.say("Looking up resource properties...")
	if err := t.scales(target, "scale", "deployment", "replicaSet", "statefulSet"); err != nil {
		return nil, err
	}
	t.say("Calling scale operation for %s in namespace %s with replicas %d...", target.name, target.namespace, *d.Replicas.n)
	if err := t.scale(ctx, target, *d.Replicas.n); err != nil {
		return nil, err
	}
	t.say("Scale operation completed successfully")
	return nil, nil
}

// scales refuses what Clouddriver has no means for.
func (t *turn) scales(target target, deed string, kinds ...string) error {
	if !slices.Contains(kinds, target.written) {
		return illegalArgument(fmt.Sprintf("Resource with %s does not support %s", target, deed))
	}
	return nil
}

func (t *turn) scale(ctx context.Context, target target, replicas int64) error {
	object := resource(target.args())
	_, err := t.change(ctx, act{object: object, failed: fmt.Sprintf("Failed to scale %s from %s: ", object, target.namespace),
		args: vedette.ScaleArgs{Target: target.args(), Replicas: replicas}, within: t.tasks.cfg.Timeout})
	return err
}
