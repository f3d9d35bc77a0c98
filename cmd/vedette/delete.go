package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

const deleteExample = `  vedette delete deployment web -n shop
  vedette delete pods -l app=web --account 'prod-*' --now
  vedette delete pods --field-selector status.phase=Failed -A --dry-run=server
  vedette delete jobs --all -n batch
  vedette delete -f manifests/ --ignore-not-found
  vedette get pods -l app=old -o name | xargs vedette delete`

type deleteOptions struct {
	targetFlags
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
		Use:     "delete TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | TYPE --all | ACCOUNT/TYPE/NAMESPACE/NAME... | -f FILE",
		Short:   "Delete objects, and wait until they are gone",
		Example: deleteExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := o.args()
			if err != nil {
				return err
			}
			return o.forEachTarget(cmd, args, func(ctx context.Context, run *accountRun, t target) error { return o.delete(ctx, run, t, a) })
		},
	}
	o.addFlags(cmd)
	o.addAllFlag(cmd, "delete")
	o.change.addFlags(cmd)
	flags := cmd.Flags()
	flags.Lookup("output").Usage = "name prints the names of what was deleted, as get does"
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "choose in all namespaces; with --all, -l or --field-selector")
	flags.StringVar(&o.fieldSelector, "field-selector", "", "the objects with these fields (status.phase=Failed), as far as the API server knows the kind's")
	flags.StringVar(&o.cascade, "cascade", "background", "what becomes of the objects that these own: background, foreground (they go first) or orphan (they stay)")
	flags.Int64Var(&o.grace, "grace-period", -1, "seconds that pods have to end; -1 for what they say themselves")
	flags.BoolVar(&o.now, "now", false, "give them one second")
	flags.BoolVar(&o.force, "force", false, "with --grace-period=0, do not wait for the kubelet to confirm that a pod has ended")
	flags.BoolVar(&o.ignoreMissing, "ignore-not-found", false, "what is not there is no failure")
	flags.BoolVar(&o.wait, "wait", true, "wait until they are gone")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// args returns the arguments that all deletes of one command share.
func (o deleteOptions) args() (vedette.DeleteArgs, error) {
	a := vedette.DeleteArgs{Propagation: o.cascade, MissingOK: o.ignoreMissing, NoWait: !o.wait}
	if err := o.change.validate(); err != nil {
		return a, err
	}
	switch o.cascade {
	case "background", "foreground", "orphan":
	default:
		return a, vedette.Errorf(vedette.Invalid, "--cascade is %q and may be background, foreground or orphan", o.cascade)
	}
	grace := o.grace
	switch {
	case o.now && o.grace >= 0:
		return a, vedette.Errorf(vedette.Invalid, "--now and --grace-period exclude each other")
	case o.now, o.grace == 0 && !o.force: // 0 means that nobody looks whether a pod has ended
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

func (o deleteOptions) delete(ctx context.Context, run *accountRun, t target, a vedette.DeleteArgs) error {
	a.Target, a.LabelSelector, a.FieldSelector, a.All, a.AllNamespaces = t.reference(), t.selector, t.fieldSelector, t.all, t.allNamespaces
	out, ok, err := run.execute(ctx, "delete "+t.displayName(), client.Operation{Args: a, Timeout: o.timeout})
	for _, key := range out.Keys { // some may be gone though others are not
		if ok || out.State == vedette.Failed && out.Reason != "NotFound" && t.name == "" {
			o.reportDeletion(run, key)
		}
	}
	if ok && t.name == "" && len(out.Keys) == 0 {
		run.warnf("No resources found in %s of %s.", t.namespacePhrase(), run.account)
	}
	return err
}

func (o deleteOptions) reportDeletion(run *accountRun, key client.Key) {
	if o.change.output == "name" {
		run.reportNames(client.Outcome{Keys: []client.Key{key}}, "")
		return
	}
	run.printf("%s%s", deletionMessage(key, o.force), o.change.suffix())
}

// deletionMessage is how kubectl tells of one.
func deletionMessage(key client.Key, force bool) string {
	text := fmt.Sprintf("%s %q deleted", kindDisplayName(key.Kind), key.Name)
	if force {
		text = strings.Replace(text, " deleted", " force deleted", 1)
	}
	if key.Namespace != "" {
		text += " from " + key.Namespace + " namespace"
	}
	return text
}
