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
	targetFlags
	revision int64
}

func newRolloutHistory() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history" + targetUsage,
		Short: "Show the revisions of a workload, or the pod template of one",
		Example: `  vedette rollout history deployment/web -n shop --account 'prod-*'
  vedette rollout history deployment/web --revision 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.revision < 0 {
				return vedette.Errorf(vedette.Invalid, "--revision is %d and can't be negative", o.revision)
			}
			if err := o.change.validate("json", "yaml"); err != nil {
				return err
			}
			if o.change.output != "" && o.revision == 0 {
				return vedette.Errorf(vedette.Invalid, "-o prints what holds one revision: say with --revision which")
			}
			return o.forEachObject(cmd, args, o.show)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().Int64Var(&o.revision, "revision", 0, "show the pod template of this revision")
	cmd.Flags().StringVarP(&o.change.output, "output", "o", "", "with --revision: name, json or yaml of the ReplicaSet or ControllerRevision that holds it")
	return cmd
}

func (o historyOptions) show(ctx context.Context, run *accountRun, t target) error {
	out, ok, err := run.query(ctx, "history of "+t.displayName(), t.operation(vedette.VerbHistory))
	if !ok {
		return err
	}
	var revisions []vedette.Revision
	if err := json.Unmarshal(out.Result, &revisions); err != nil {
		run.failf("the history of %s makes no sense: %v", t.displayName(), err)
		return nil
	}
	if o.revision > 0 {
		return o.showRevision(ctx, run, t, revisions)
	}
	run.countSuccess()
	run.printf("%s", t.displayName())
	for _, line := range revisionLines(revisions) {
		run.printf("%s", line)
	}
	return nil
}

// showRevision reads what holds a revision: a ReplicaSet, or a ControllerRevision.
func (o historyOptions) showRevision(ctx context.Context, run *accountRun, t target, revisions []vedette.Revision) error {
	i := slices.IndexFunc(revisions, func(r vedette.Revision) bool { return r.Number == o.revision })
	if i < 0 {
		run.failf("%s has no revision %d; `vedette rollout history` shows which it has", t.displayName(), o.revision)
		return nil
	}
	revisionObject := target{kind: "ControllerRevision", apiVersion: "apps/v1", namespace: t.namespace, name: revisions[i].Name}
	if strings.HasPrefix(kindDisplayName(t.kind), "deployment") {
		revisionObject.kind = "ReplicaSet"
	}
	out, ok, err := run.query(ctx, "read "+revisionObject.displayName(), revisionObject.operation(vedette.VerbGet))
	if !ok {
		return err
	}
	if o.change.output != "" {
		run.countSuccess()
		run.report(out, revisionObject.displayName(), "")
		return nil
	}
	template, err := templateOf(out)
	if err != nil {
		run.failf("what holds revision %d of %s makes no sense: %v", o.revision, t.displayName(), err)
		return nil
	}
	run.countSuccess()
	run.printf("%s with revision #%d", t.displayName(), o.revision)
	cause := ""
	if revisionObject.kind == "ReplicaSet" {
		cause = revisions[i].ChangeCause
	}
	for _, line := range template.describe(cause) {
		run.printf("%s", line)
	}
	return nil
}

// templateOf reads the pods of a revision. A ControllerRevision holds them as a
// patch of its workload.
func templateOf(out client.Outcome) (podTemplate, error) {
	var revisionObject struct {
		Spec struct{ Template podTemplate }
		Data struct {
			Spec struct{ Template podTemplate }
		}
		Kind string
	}
	if len(out.Objects) != 1 {
		return podTemplate{}, vedette.Errorf(vedette.Unavailable, "%d objects were told", len(out.Objects))
	}
	if err := json.Unmarshal(out.Objects[0], &revisionObject); err != nil {
		return podTemplate{}, err
	}
	if revisionObject.Kind == "ControllerRevision" {
		return revisionObject.Data.Spec.Template, nil
	}
	return revisionObject.Spec.Template, nil
}

func revisionLines(revisions []vedette.Revision) []string {
	l := &layout{statusColumn: -1}
	l.add([]string{"REVISION", "CURRENT", "NAME", "CHANGE-CAUSE"})
	for _, r := range revisions {
		l.add([]string{strconv.FormatInt(r.Number, 10), map[bool]string{true: "*"}[r.Current], r.Name, orDefault(r.ChangeCause, "<none>")})
	}
	var lines []string
	for _, cells := range l.lines {
		lines = append(lines, l.format(cells, false))
	}
	return lines
}
