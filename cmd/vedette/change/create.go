package change

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

// fileOptions are the flags of commands that send whole objects from files: create and replace.
type fileOptions struct {
	manifests.Options
	change          fanout.ChangeOptions
	account         string
	fieldValidation string
	manager         string
	timeout         time.Duration
}

func (o *fileOptions) addFlags(cmd *cobra.Command, manager string) {
	o.Options.AddFlags(cmd)
	target.AddAccountFlag(cmd, &o.account)
	o.change.AddServerFlags(cmd)
	addFieldManagerFlag(cmd, &o.manager, manager)
	addFieldValidationFlag(cmd, &o.fieldValidation)
	cmd.Flags().StringVarP(&o.Selector, "selector", "l", "", "Use only objects in the files that match this label selector (app=web,tier!=db).")
}

// forEachDocument calls do for every object in the files, in every account that it is for.
func (o *fileOptions) forEachDocument(cmd *cobra.Command,
	do func(ctx context.Context, run *fanout.Run, d manifests.Document, a vedette.ApplyArgs) error) error {
	if len(o.Files) == 0 {
		return vedette.Errorf(vedette.Invalid, "no files: use -f")
	}
	validation, err := parseFieldValidation(o.fieldValidation)
	if err != nil {
		return err
	}
	if err := o.change.ValidateServer(); err != nil {
		return err
	}
	files, err := o.Load(cmd.InOrStdin())
	if err != nil {
		return err
	}
	fan, err := target.NewFanOutForDocuments(cmd, o.account, files, o.change)
	if err != nil {
		return err
	}
	return fan.ForEachAccount(cmd.Context(), func(ctx context.Context, run *fanout.Run, documents []manifests.Document) error {
		for _, d := range documents {
			args := vedette.ApplyArgs{Manifest: d.Raw, Namespace: d.Metadata.Namespace, Fields: validation, FieldManager: o.manager}
			if err := do(ctx, run, d, args); err != nil {
				return err
			}
		}
		return nil
	})
}

// send sends one object. The verb is for messages: "create".
func (o *fileOptions) send(ctx context.Context, run *fanout.Run, d manifests.Document, verb, pastTense string, a vedette.ApplyArgs) error {
	what := fmt.Sprintf("%s %s of %s", verb, d.DisplayName(), d.Source)
	return run.Change(ctx, what, client.Operation{Args: a, Timeout: o.timeout}, d.DisplayName(), pastTense)
}

func newCreate() *cobra.Command {
	var o fileOptions
	cmd := &cobra.Command{
		Use:   "create -f FILE|DIRECTORY|-",
		Short: "Create objects from files in one or more clusters",
		Long: `Create objects from files in one or more clusters. An object that exists is an error.

Kinds without a file, for example ` + "`kubectl create configmap`" + `, are created by kubectl's help:
kubectl create configmap colours --from-literal=sky=blue --dry-run=client -o yaml | vedette create -f -`,
		Example: `  vedette create -f job.yaml -n shop --account 'prod-*'
  vedette create -f manifests/ --dry-run=server -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.forEachDocument(cmd, func(ctx context.Context, run *fanout.Run, d manifests.Document, a vedette.ApplyArgs) error {
				a.Strategy = vedette.StrategyCreateOnly
				return o.send(ctx, run, d, "create", "created", a)
			})
		},
	}
	o.addFlags(cmd, "kubectl-create")
	return cmd
}

func newReplace() *cobra.Command {
	var o fileOptions
	var force bool
	cmd := &cobra.Command{
		Use:   "replace -f FILE|DIRECTORY|-",
		Short: "Replace objects by those in files in one or more clusters",
		Long: `Replace objects by those in files in one or more clusters. An object that does not exist is an error.

A manifest with a resourceVersion replaces only that version. With --force, objects are deleted and created again,
and an object that does not exist is created. A manifest that the API server would reject deletes nothing.`,
		Example: `  vedette replace -f web.yaml -n shop --account 'prod-*'
  vedette get deployment web -n shop --account dev -o yaml | sed 's/web:1/web:2/' | vedette replace -f -
  vedette replace --force -f job.yaml -n shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("timeout") && !force {
				return vedette.Errorf(vedette.Invalid, "--timeout requires --force: only a deletion is waited for")
			}
			if force && cmd.Flags().Changed("field-manager") {
				return vedette.Errorf(vedette.Invalid, "--field-manager cannot be combined with --force: the object is applied again by the agent's manager")
			}
			return o.forEachDocument(cmd, func(ctx context.Context, run *fanout.Run, d manifests.Document, a vedette.ApplyArgs) error {
				if err := d.CheckName(); err != nil {
					run.Failf("%v", err)
					return nil
				}
				a.Strategy, a.MustExist = vedette.StrategyReplace, true
				if force {
					a.Strategy = vedette.StrategyRecreate
					a.MustExist = false
					a.FieldManager = ""
				}
				return o.send(ctx, run, d, "replace", "replaced", a)
			})
		},
	}
	o.addFlags(cmd, "kubectl-replace")
	cmd.Flags().BoolVar(&force, "force", false, "Delete the objects and create them again, for changes of immutable fields.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "With --force, time limit for each object. Defaults to 30s.")
	return cmd
}
