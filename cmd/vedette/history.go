package main

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

type historyOptions struct {
	aims
	revision int64
}

func newRolloutHistory() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history" + aimsUse,
		Short: "Show the revisions of a workload, or the pod template of one",
		Example: `  vedette rollout history deployment/web -n shop --account 'prod-*'
  vedette rollout history deployment/web --revision 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.revision < 0 {
				return vedette.Errorf(vedette.Invalid, "--revision is %d and can't be negative", o.revision)
			}
			if err := o.manner.validate("json", "yaml"); err != nil {
				return err
			}
			if o.manner.output != "" && o.revision == 0 {
				return vedette.Errorf(vedette.Invalid, "-o prints what holds one revision: say with --revision which")
			}
			return o.named(cmd, args, o.show)
		},
	}
	o.flags(cmd)
	cmd.Flags().Int64Var(&o.revision, "revision", 0, "show the pod template of this revision")
	cmd.Flags().StringVarP(&o.manner.output, "output", "o", "", "with --revision: name, json or yaml of the ReplicaSet or ControllerRevision that holds it")
	return cmd
}

func (o historyOptions) show(ctx context.Context, h *hand, one aim) error {
	out, ok, err := h.must(ctx, "history of "+one.label(), one.on(vedette.VerbHistory))
	if !ok {
		return err
	}
	var revisions []vedette.Revision
	if err := json.Unmarshal(out.Result, &revisions); err != nil {
		h.done--
		h.fail("the history of %s makes no sense: %v", one.label(), err)
		return nil
	}
	if o.revision > 0 {
		return o.showOne(ctx, h, one, revisions)
	}
	h.say("%s", one.label())
	for _, line := range revisionLines(revisions) {
		h.say("%s", line)
	}
	return nil
}

// showOne reads what holds a revision: a ReplicaSet, or a ControllerRevision.
func (o historyOptions) showOne(ctx context.Context, h *hand, one aim, revisions []vedette.Revision) error {
	h.done-- // the history is not what was asked for
	i := slices.IndexFunc(revisions, func(r vedette.Revision) bool { return r.Number == o.revision })
	if i < 0 {
		h.fail("%s has no revision %d; `vedette rollout history` shows which it has", one.label(), o.revision)
		return nil
	}
	holder := aim{kind: "ControllerRevision", apiVersion: "apps/v1", namespace: one.namespace, name: revisions[i].Name}
	if strings.HasPrefix(kindLabel(one.kind), "deployment") {
		holder.kind = "ReplicaSet"
	}
	out, ok, err := h.must(ctx, "read "+holder.label(), holder.on(vedette.VerbGet))
	if !ok {
		return err
	}
	if o.manner.output != "" {
		h.report(out, holder.label(), "")
		return nil
	}
	template, err := templateOf(out)
	if err != nil {
		h.done--
		h.fail("what holds revision %d of %s makes no sense: %v", o.revision, one.label(), err)
		return nil
	}
	h.say("%s with revision #%d", one.label(), o.revision)
	cause := ""
	if holder.kind == "ReplicaSet" {
		cause = revisions[i].ChangeCause
	}
	for _, line := range template.describe(cause) {
		h.say("%s", line)
	}
	return nil
}

// templateOf reads the pods of a revision. A ControllerRevision holds them as a
// patch of its workload.
func templateOf(out client.Outcome) (podTemplate, error) {
	var holder struct {
		Spec struct{ Template podTemplate }
		Data struct {
			Spec struct{ Template podTemplate }
		}
		Kind string
	}
	if len(out.Objects) != 1 {
		return podTemplate{}, vedette.Errorf(vedette.Unavailable, "%d objects were told", len(out.Objects))
	}
	if err := json.Unmarshal(out.Objects[0], &holder); err != nil {
		return podTemplate{}, err
	}
	if holder.Kind == "ControllerRevision" {
		return holder.Data.Spec.Template, nil
	}
	return holder.Spec.Template, nil
}

func revisionLines(revisions []vedette.Revision) []string {
	l := &layout{status: -1}
	l.add([]string{"REVISION", "CURRENT", "NAME", "CHANGE-CAUSE"})
	for _, r := range revisions {
		l.add([]string{strconv.FormatInt(r.Number, 10), map[bool]string{true: "*"}[r.Current], r.Name, or(r.ChangeCause, "<none>")})
	}
	var lines []string
	for _, cells := range l.lines {
		lines = append(lines, l.format(cells, false))
	}
	return lines
}
