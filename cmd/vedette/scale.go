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
	aims
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
			if err := o.manner.validate("json", "yaml"); err != nil {
				return err
			}
			var chosen atomic.Int64
			err := o.named(cmd, args, func(ctx context.Context, h *hand, one aim) error {
				chosen.Add(1)
				return o.scale(ctx, h, one)
			})
			if err == nil && chosen.Load() == 0 {
				return vedette.Errorf(vedette.NotFound, "nothing was scaled: no object was chosen")
			}
			return err
		},
	}
	o.flags(cmd)
	o.allFlag(cmd, "scale")
	o.manner.flags(cmd)
	cmd.Flags().Int64Var(&o.replicas, "replicas", 0, "how many there shall be")
	cmd.Flags().Int64Var(&o.current, "current-replicas", -1, "scale only what has so many now; -1 for any number")
	return cmd
}

func (o scaleOptions) scale(ctx context.Context, h *hand, one aim) error {
	op := one.on(vedette.VerbScale)
	op.Replicas = &o.replicas
	if o.current >= 0 && !o.manner.local() {
		ok, err := o.check(ctx, h, one)
		if !ok {
			return err
		}
		op = o.conditional(one)
	}
	out, ok, err := h.must(ctx, "scale "+one.label(), op)
	if ok {
		h.report(out, one.label(), "scaled")
	}
	return err
}

// check refuses what has another number of replicas than it should.
func (o scaleOptions) check(ctx context.Context, h *hand, one aim) (bool, error) {
	out, ok, err := h.must(ctx, "read "+one.label(), one.on(vedette.VerbGet))
	if !ok {
		return false, err
	}
	h.done--
	var object struct{ Spec struct{ Replicas *int64 } }
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &object) != nil || object.Spec.Replicas == nil {
		h.fail("%s does not say how many replicas it has", one.label())
		return false, nil
	}
	if *object.Spec.Replicas != o.current {
		h.fail("Expected replicas of %s to be %d, was %d", one.label(), o.current, *object.Spec.Replicas)
		return false, nil
	}
	return true, nil
}

// conditional scales only where the number is still what it was when it was read.
func (o scaleOptions) conditional(one aim) client.Operation {
	op := one.on(vedette.VerbPatch)
	op.Type = string(vedette.JSONPatch)
	op.Patch = fmt.Appendf(nil, `[{"op":"test","path":"/spec/replicas","value":%d},{"op":"replace","path":"/spec/replicas","value":%d}]`, o.current, o.replicas)
	return op
}
