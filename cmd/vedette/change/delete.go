package change

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const deleteExample = `  vedette delete deployment web -n shop
  vedette delete pods -l app=web --account 'prod-*' --now
  vedette delete pods --field-selector status.phase=Failed -A --dry-run=server
  vedette delete jobs --all -n batch
  vedette delete -f manifests/ --ignore-not-found
  vedette get pods -l app=old -o name | xargs vedette delete`

type deleteOptions struct {
	target.Flags
	cascade       string
	grace         int64
	now, force    bool
	ignoreMissing bool
	wait          bool
	timeout       time.Duration
}

func newDelete() *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:     "delete " + target.Usage,
		Short:   "Delete objects in one or more clusters",
		Example: deleteExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := o.args()
			if err != nil {
				return err
			}
			return o.ForEachTarget(cmd, args, func(ctx context.Context, run *fanout.Run, t target.Target) error { return o.delete(ctx, run, t, a) })
		},
	}
	o.AddFlags(cmd)
	o.AddSelectionFlags(cmd, "delete")
	o.Change.AddFlags(cmd)
	flags := cmd.Flags()
	flags.Lookup("output").Usage = "Output format: name. Defaults to one line for each object."
	flags.StringVar(&o.cascade, "cascade", "background",
		"How to delete objects that the deleted objects own: background, foreground (before their owner) or orphan (not at all).")
	flags.Int64Var(&o.grace, "grace-period", -1, "Seconds that pods have to terminate. -1 uses the pods' own value.")
	flags.BoolVar(&o.now, "now", false, "Set the grace period to one second.")
	flags.BoolVar(&o.force, "force", false, "With --grace-period=0, do not wait until the kubelet confirms that a pod has terminated.")
	flags.BoolVar(&o.ignoreMissing, "ignore-not-found", false, "Treat objects that do not exist as deleted.")
	flags.BoolVar(&o.wait, "wait", true, "Wait until the objects are gone.")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "Time limit for each delete.")
	return cmd
}

// args returns the arguments that all deletes of one command share.
func (o deleteOptions) args() (vedette.DeleteArgs, error) {
	a := vedette.DeleteArgs{Propagation: o.cascade, MissingOK: o.ignoreMissing, NoWait: !o.wait}
	if err := o.Change.Validate(); err != nil {
		return a, err
	}
	if err := checkCascade(o.cascade); err != nil {
		return a, err
	}
	grace := o.grace
	switch {
	case o.now && o.grace >= 0:
		return a, vedette.Errorf(vedette.Invalid, "--now and --grace-period exclude each other")
	case o.now, o.grace == 0 && !o.force: // 0 would not wait until pods have terminated
		grace = 1
	case o.force && o.grace < 0:
		grace = 0
	case o.force && o.grace > 0:
		return a, vedette.Errorf(vedette.Invalid, "--force and a --grace-period above 0 exclude each other")
	}
	if grace >= 0 {
		a.GraceSeconds = &grace
	}
	return a, nil
}

func checkCascade(word string) error {
	if slices.Contains([]string{"background", "foreground", "orphan"}, word) {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "invalid --cascade %q: use background, foreground or orphan", word)
}

func (o deleteOptions) delete(ctx context.Context, run *fanout.Run, t target.Target, a vedette.DeleteArgs) error {
	a.Target = t.Reference()
	a.LabelSelector = t.Selector
	a.FieldSelector = t.FieldSelector
	a.All = t.All
	a.AllNamespaces = t.AllNamespaces
	out, ok, err := run.Execute(ctx, "delete "+t.DisplayName(), client.Operation{Args: a, Timeout: o.timeout})
	for _, key := range out.Keys { // some may be deleted even if the delete failed
		if ok || out.State == vedette.Failed && out.Reason != "NotFound" && t.Name == "" {
			reportDeletion(run, o.Change, key, deletionMessage(key, o.force))
		}
	}
	if ok && t.Name == "" && len(out.Keys) == 0 {
		run.Noticef("No resources found in %s of %s.", t.NamespacePhrase(), run.Account)
	}
	return err
}

// reportDeletion prints a message about a deleted object, or with -o name its name.
func reportDeletion(run *fanout.Run, change fanout.ChangeOptions, key client.Key, message string) {
	if change.Output == "name" {
		run.ReportNames(client.Outcome{Keys: []client.Key{key}}, "")
		return
	}
	run.Printf("%s%s", message, change.Suffix())
}

// deletionMessage returns the line that kubectl prints for a deleted object.
func deletionMessage(key client.Key, force bool) string {
	text := fmt.Sprintf("%s %q deleted", output.KindName(key.Kind), key.Name)
	if force {
		text = strings.Replace(text, " deleted", " force deleted", 1)
	}
	if key.Namespace != "" {
		text += " from " + key.Namespace + " namespace"
	}
	return text
}
