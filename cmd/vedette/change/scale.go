package change

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
		Short: "Set the number of replicas of workloads",
		Example: `  vedette scale deployment web --replicas 5 -n shop --account 'prod-*'
  vedette scale sts/db --current-replicas 2 --replicas 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("replicas"):
				return vedette.Errorf(vedette.Invalid, "--replicas is required")
			case o.replicas < 0:
				return vedette.Errorf(vedette.Invalid, "invalid --replicas %d: must not be negative", o.replicas)
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
				return vedette.Errorf(vedette.NotFound, "nothing was scaled: no object matches")
			}
			return err
		},
	}
	o.AddFlags(cmd)
	o.AddAllFlag(cmd, "scale")
	o.Change.AddFlags(cmd)
	cmd.Flags().Int64Var(&o.replicas, "replicas", 0, "New number of replicas. Required.")
	cmd.Flags().Int64Var(&o.current, "current-replicas", -1, "Scale only workloads that have this number of replicas. -1 for any number.")
	return cmd
}

func (o scaleOptions) scale(ctx context.Context, run *fanout.Run, t target.Target) error {
	op := client.Operation{Args: vedette.ScaleArgs{Target: t.Reference(), Replicas: o.replicas}}
	if o.current >= 0 && !o.Change.IsClientDryRun() {
		ok, err := o.checkCurrentReplicas(ctx, run, t)
		if !ok {
			return err
		}
		op = o.conditionalPatch(t)
	}
	return run.Change(ctx, "scale "+t.DisplayName(), op, t.DisplayName(), "scaled")
}

// checkCurrentReplicas reports whether a workload has the number of replicas of
// --current-replicas.
func (o scaleOptions) checkCurrentReplicas(ctx context.Context, run *fanout.Run, t target.Target) (bool, error) {
	out, ok, err := run.Query(ctx, "read "+t.DisplayName(), t.Operation(vedette.VerbGet))
	if !ok {
		return false, err
	}
	var object struct{ Spec struct{ Replicas *int64 } }
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &object) != nil || object.Spec.Replicas == nil {
		run.Failf("%s has no spec.replicas", t.DisplayName())
		return false, nil
	}
	if *object.Spec.Replicas != o.current {
		run.Failf("Expected replicas of %s to be %d, was %d", t.DisplayName(), o.current, *object.Spec.Replicas)
		return false, nil
	}
	return true, nil
}

// conditionalPatch returns a patch that fails if the number of replicas has changed since it
// was read.
func (o scaleOptions) conditionalPatch(t target.Target) client.Operation {
	patch := fmt.Appendf(nil, `[{"op":"test","path":"/spec/replicas","value":%d},{"op":"replace","path":"/spec/replicas","value":%d}]`,
		o.current, o.replicas)
	return client.Operation{Args: vedette.PatchArgs{Target: t.Reference(), Type: vedette.JSONPatch, Patch: patch}}
}
