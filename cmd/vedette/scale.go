package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

type scaleOptions struct {
	targetFlags
	replicas, current int64
}

func newScale() *cobra.Command {
	var o scaleOptions
	cmd := &cobra.Command{
		Use:   "scale --replicas=N TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | TYPE --all | -f FILE",
		Short: "Set the number of replicas",
		Example: `  vedette scale deployment web --replicas 5 -n shop --account 'prod-*'
  vedette scale sts/db --current-replicas 2 --replicas 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("replicas"):
				return vedette.Errorf(vedette.Invalid, "say with --replicas how many there shall be")
			case o.replicas < 0:
				return vedette.Errorf(vedette.Invalid, "%d replicas can't be had", o.replicas)
			}
			if err := o.change.validate("json", "yaml"); err != nil {
				return err
			}
			var matched atomic.Int64
			err := o.forEachObject(cmd, args, func(ctx context.Context, run *accountRun, t target) error {
				matched.Add(1)
				return o.scale(ctx, run, t)
			})
			if err == nil && matched.Load() == 0 {
				return vedette.Errorf(vedette.NotFound, "nothing was scaled: no object was chosen")
			}
			return err
		},
	}
	o.addFlags(cmd)
	o.addAllFlag(cmd, "scale")
	o.change.addFlags(cmd)
	cmd.Flags().Int64Var(&o.replicas, "replicas", 0, "how many there shall be")
	cmd.Flags().Int64Var(&o.current, "current-replicas", -1, "scale only what has so many now; -1 for any number")
	return cmd
}

func (o scaleOptions) scale(ctx context.Context, run *accountRun, t target) error {
	op := client.Operation{Args: vedette.ScaleArgs{Target: t.reference(), Replicas: o.replicas}}
	if o.current >= 0 && !o.change.isClientDryRun() {
		ok, err := o.checkCurrentReplicas(ctx, run, t)
		if !ok {
			return err
		}
		op = o.conditionalPatch(t)
	}
	out, ok, err := run.execute(ctx, "scale "+t.displayName(), op)
	if ok {
		run.report(out, t.displayName(), "scaled")
	}
	return err
}

// checkCurrentReplicas refuses what has another number of replicas than it should.
func (o scaleOptions) checkCurrentReplicas(ctx context.Context, run *accountRun, t target) (bool, error) {
	out, ok, err := run.execute(ctx, "read "+t.displayName(), t.operation(vedette.VerbGet))
	if !ok {
		return false, err
	}
	run.succeeded--
	var object struct{ Spec struct{ Replicas *int64 } }
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &object) != nil || object.Spec.Replicas == nil {
		run.failf("%s does not say how many replicas it has", t.displayName())
		return false, nil
	}
	if *object.Spec.Replicas != o.current {
		run.failf("Expected replicas of %s to be %d, was %d", t.displayName(), o.current, *object.Spec.Replicas)
		return false, nil
	}
	return true, nil
}

// conditionalPatch scales only where the number is still what it was when it was read.
func (o scaleOptions) conditionalPatch(t target) client.Operation {
	patch := fmt.Appendf(nil, `[{"op":"test","path":"/spec/replicas","value":%d},{"op":"replace","path":"/spec/replicas","value":%d}]`, o.current, o.replicas)
	return client.Operation{Args: vedette.PatchArgs{Target: t.reference(), Type: vedette.JSONPatch, Patch: patch}}
}
