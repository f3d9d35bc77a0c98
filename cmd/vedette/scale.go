package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

type scaleOptions struct {
	target.Flags
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
			if err := o.Change.Validate("json", "yaml"); err != nil {
				return err
			}
			var matched atomic.Int64
			err := o.ForEachObject(cmd, args, func(ctx context.Context, run *fanout.Run, t target.Target) error {
				matched.Add(1)
				return o.scale(ctx, run, t)
			})
			if err == nil && matched.Load() == 0 {
				return vedette.Errorf(vedette.NotFound, "nothing was scaled: no object was chosen")
			}
			return err
		},
	}
	o.AddFlags(cmd)
	o.AddAllFlag(cmd, "scale")
	o.Change.AddFlags(cmd)
	cmd.Flags().Int64Var(&o.replicas, "replicas", 0, "how many there shall be")
	cmd.Flags().Int64Var(&o.current, "current-replicas", -1, "scale only what has so many now; -1 for any number")
	return cmd
}

func (o scaleOptions) scale(ctx context.Context, run *fanout.Run, t target.Target) error {
	op := t.Operation(vedette.VerbScale)
	op.Replicas = &o.replicas
	if o.current >= 0 && !o.Change.IsClientDryRun() {
		ok, err := o.checkCurrentReplicas(ctx, run, t)
		if !ok {
			return err
		}
		op = o.conditionalPatch(t)
	}
	out, ok, err := run.Execute(ctx, "scale "+t.DisplayName(), op)
	if ok {
		run.Report(out, t.DisplayName(), "scaled")
	}
	return err
}

// checkCurrentReplicas refuses what has another number of replicas than it should.
func (o scaleOptions) checkCurrentReplicas(ctx context.Context, run *fanout.Run, t target.Target) (bool, error) {
	out, ok, err := run.Query(ctx, "read "+t.DisplayName(), t.Operation(vedette.VerbGet))
	if !ok {
		return false, err
	}
	var object struct{ Spec struct{ Replicas *int64 } }
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &object) != nil || object.Spec.Replicas == nil {
		run.Failf("%s does not say how many replicas it has", t.DisplayName())
		return false, nil
	}
	if *object.Spec.Replicas != o.current {
		run.Failf("Expected replicas of %s to be %d, was %d", t.DisplayName(), o.current, *object.Spec.Replicas)
		return false, nil
	}
	return true, nil
}

// conditionalPatch scales only where the number is still what it was when it was read.
func (o scaleOptions) conditionalPatch(t target.Target) client.Operation {
	op := t.Operation(vedette.VerbPatch)
	op.Type = string(vedette.JSONPatch)
	op.Patch = fmt.Appendf(nil, `[{"op":"test","path":"/spec/replicas","value":%d},{"op":"replace","path":"/spec/replicas","value":%d}]`, o.current, o.replicas)
	return op
}
