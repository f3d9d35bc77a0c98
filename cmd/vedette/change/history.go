package change

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/describe"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

type historyOptions struct {
	target.Flags
	revision int64
}

func newRolloutHistory() *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history" + targetUsage,
		Short: "Show the revisions of workloads, or the pod template of one revision",
		Example: `  vedette rollout history deployment/web -n shop --account 'prod-*'
  vedette rollout history deployment/web --revision 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.revision < 0 {
				return vedette.Errorf(vedette.Invalid, "invalid --revision %d: must not be negative", o.revision)
			}
			if err := o.Change.Validate("json", "yaml"); err != nil {
				return err
			}
			if o.Change.Output != "" && o.revision == 0 {
				return vedette.Errorf(vedette.Invalid, "-o requires --revision")
			}
			return o.ForEachObject(cmd, args, o.show)
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().Int64Var(&o.revision, "revision", 0, "Show the pod template of this revision.")
	cmd.Flags().StringVarP(&o.Change.Output, "output", "o", "",
		"With --revision, output format of its ReplicaSet or ControllerRevision: name, json or yaml.")
	return cmd
}

func (o historyOptions) show(ctx context.Context, run *fanout.Run, t target.Target) error {
	out, ok, err := run.Query(ctx, "history of "+t.DisplayName(), t.Operation(vedette.VerbHistory))
	if !ok {
		return err
	}
	var revisions []vedette.Revision
	if !run.Decode(out, "history of "+t.DisplayName(), &revisions) {
		return nil
	}
	if o.revision > 0 {
		return o.showRevision(ctx, run, t, revisions)
	}
	run.CountSuccess()
	run.Printf("%s", t.DisplayName())
	for _, line := range revisionLines(revisions) {
		run.Printf("%s", line)
	}
	return nil
}

// showRevision shows the pod template of a revision, which is in a ReplicaSet or a
// ControllerRevision.
func (o historyOptions) showRevision(ctx context.Context, run *fanout.Run, t target.Target, revisions []vedette.Revision) error {
	i := slices.IndexFunc(revisions, func(r vedette.Revision) bool { return r.Number == o.revision })
	if i < 0 {
		run.Failf("%s has no revision %d: `vedette rollout history` lists its revisions", t.DisplayName(), o.revision)
		return nil
	}
	revisionObject := target.Target{Kind: "ControllerRevision", APIVersion: "apps/v1", Namespace: t.Namespace, Name: revisions[i].Name}
	if strings.HasPrefix(output.KindName(t.Kind), "deployment") {
		revisionObject.Kind = "ReplicaSet"
	}
	out, ok, err := run.Query(ctx, "read "+revisionObject.DisplayName(), revisionObject.Operation(vedette.VerbGet))
	if !ok {
		return err
	}
	if o.Change.Output != "" {
		run.CountSuccess()
		run.Report(out, revisionObject.DisplayName(), "")
		return nil
	}
	template, err := templateOf(out)
	if err != nil {
		run.Failf("the object of revision %d of %s is invalid: %v", o.revision, t.DisplayName(), err)
		return nil
	}
	run.CountSuccess()
	run.Printf("%s with revision #%d", t.DisplayName(), o.revision)
	cause := ""
	if revisionObject.Kind == "ReplicaSet" {
		cause = revisions[i].ChangeCause
	}
	for _, line := range template.Describe(cause) {
		run.Printf("%s", line)
	}
	return nil
}

// templateOf returns the pod template of a revision. A ControllerRevision contains it as a
// patch of its workload.
func templateOf(out client.Outcome) (describe.PodTemplate, error) {
	var revisionObject struct {
		Spec struct{ Template describe.PodTemplate }
		Data struct {
			Spec struct{ Template describe.PodTemplate }
		}
		Kind string
	}
	if len(out.Objects) != 1 {
		return describe.PodTemplate{},
			vedette.Errorf(vedette.Unavailable, "the agent returned %s, want 1", output.Count(len(out.Objects), "object"))
	}
	if err := json.Unmarshal(out.Objects[0], &revisionObject); err != nil {
		return describe.PodTemplate{}, err
	}
	if revisionObject.Kind == "ControllerRevision" {
		return revisionObject.Data.Spec.Template, nil
	}
	return revisionObject.Spec.Template, nil
}

func revisionLines(revisions []vedette.Revision) []string {
	table := output.NewTextTable([]string{"REVISION", "CURRENT", "NAME", "CHANGE-CAUSE"})
	for _, r := range revisions {
		table.Add([]string{strconv.FormatInt(r.Number, 10), map[bool]string{true: "*"}[r.Current], r.Name, cmp.Or(r.ChangeCause, "<none>")})
	}
	return table.Text()
}
