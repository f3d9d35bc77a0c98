package change

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const applyLong = `Apply manifests to one or more clusters.

Agents apply manifests as kubectl does: by a three-way merge with the manifest that was
applied last or, with --server-side, by server-side apply. Objects that kubectl or
Spinnaker applied are merged in the same way. Objects are applied in the order of the
files. An object that fails, or a document that is invalid, does not stop the others.

ConfigMaps and Secrets are applied server-side even without --server-side, unless the agent
is configured otherwise: a client-side apply would copy their data into an annotation.

What ` + "`vedette get -o yaml`" + ` prints can be applied again. Without --account, each object goes
to the account that it was printed for; the annotation vedette.io/account, which names it,
is not applied. An object that has not changed since it was printed is left as it is.

--prune deletes what was applied before, client-side or server-side, by vedette, kubectl or
Spinnaker. It names every object that matches and stays, with the reason.`

const applyExample = `  vedette apply -f web.yaml
  vedette apply -f manifests/ -R -n shop --account 'prod-*' --wait
  vedette apply -f web.yaml --dry-run=server -o yaml
  vedette apply -f manifests/ -l app=web --prune -n shop
  kustomize build . | vedette apply -f - --server-side`

type applyOptions struct {
	manifests.Options
	pruneOptions
	change          fanout.ChangeOptions
	account         string
	serverSide      bool
	fieldValidation string // of --validate
	fields          vedette.FieldValidation
	force, wait     bool
	timeout         time.Duration
}

func newApply() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:     "apply -f FILE|DIRECTORY|-",
		Short:   "Apply manifests to one or more clusters",
		Long:    applyLong,
		Example: applyExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
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
			if o.all {
				if err := o.change.ConfirmMany("prune --all", fan.Accounts); err != nil {
					return err
				}
			}
			return fan.ForEachAccount(cmd.Context(), o.run)
		},
	}
	flags := cmd.Flags()
	o.Options.AddFlags(cmd)
	target.AddAccountFlag(cmd, &o.account)
	flags.StringVarP(&o.Selector, "selector", "l", "", "Apply only objects that match this label selector (app=web,tier!=db).")
	flags.BoolVar(&o.serverSide, "server-side", false, "Use server-side apply. Fields that another manager owns are conflicts.")
	flags.BoolVar(&o.force, "force-conflicts", false, "With --server-side, take over fields that are conflicts.")
	addFieldValidationFlag(cmd, &o.fieldValidation)
	o.change.AddFlags(cmd)
	o.pruneOptions.addFlags(cmd)
	o.change.AddYesFlag(cmd)
	flags.BoolVar(&o.wait, "wait", false, "Wait until Deployments, StatefulSets and DaemonSets are rolled out.")
	flags.DurationVar(&o.timeout, "timeout", 0,
		"Time limit for each object and, with --wait, for all rollouts together. Defaults to 30s, and 5m with --wait.")
	return cmd
}

func (o *applyOptions) validate() (err error) {
	switch {
	case len(o.Files) == 0:
		return vedette.Errorf(vedette.Invalid, "no files to apply: use -f")
	case o.force && !o.serverSide:
		return vedette.Errorf(vedette.Invalid, "--force-conflicts requires --server-side: only server-side apply has conflicts of fields")
	}
	if o.fields, err = parseFieldValidation(o.fieldValidation); err != nil {
		return err
	}
	if err := o.change.Validate("json", "yaml"); err != nil {
		return err
	}
	return o.pruneOptions.validate(*o)
}

func addFieldValidationFlag(cmd *cobra.Command, word *string) {
	flags := cmd.Flags()
	flags.StringVar(word, "validate", "",
		"How to treat unknown fields: strict (or true) rejects the manifest, warn drops them with a warning, ignore (or false) drops them. Defaults to the agent's configuration, which is strict unless changed.")
	flags.Lookup("validate").NoOptDefVal = string(vedette.FieldValidationStrict)
}

// parseFieldValidation parses the values that kubectl's --validate accepts.
func parseFieldValidation(word string) (vedette.FieldValidation, error) {
	switch word {
	case "":
		return vedette.FieldValidationDefault, nil
	case "strict", "true":
		return vedette.FieldValidationStrict, nil
	case "warn":
		return vedette.FieldValidationWarn, nil
	case "ignore", "false":
		return vedette.FieldValidationIgnore, nil
	}
	return "", vedette.Errorf(vedette.Invalid, "invalid --validate %q: use strict, warn or ignore", word)
}

func (o applyOptions) run(ctx context.Context, run *fanout.Run, docs []manifests.Document) error {
	var rollouts []rollout
	keep := appliedSet{namespaces: map[string]bool{}, kinds: map[string]bool{}}
	if o.Namespace != "" {
		keep.namespaces[o.Namespace] = true
	}
	for _, d := range docs {
		out, ok, err := o.apply(ctx, run, d)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if o.prune {
			if err := keep.add(ctx, run, d, out); err != nil {
				return err
			}
		}
		if r, is := rolloutOf(d, out); is && o.wait && !o.change.IsDryRun() {
			rollouts = append(rollouts, r)
		}
	}
	if o.prune {
		if err := o.pruneUnapplied(ctx, run, keep); err != nil {
			return err
		}
	}
	return o.waitForRollouts(ctx, run, rollouts)
}

// waitForRollouts waits until the rollouts have ended, one after the other.
func (o applyOptions) waitForRollouts(ctx context.Context, run *fanout.Run, rollouts []rollout) error {
	timeout := o.timeout
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	deadline := time.Now().Add(timeout)
	for _, r := range rollouts {
		if err := r.follow(ctx, run, deadline); err != nil {
			return err
		}
	}
	return nil
}

// apply applies one object. A dry run reads the object first, because only the difference
// shows whether the apply would change it. For server-side apply that is not shown, as in
// kubectl.
func (o applyOptions) apply(ctx context.Context, run *fanout.Run, d manifests.Document) (client.Outcome, bool, error) {
	var before client.Outcome
	if err := d.CheckName(); err != nil { // each apply would create another object
		run.Failf("%v", err)
		return before, false, nil
	}
	if !o.serverSide && o.change.IsDryRun() && !o.change.IsClientDryRun() {
		get := d.Operation(vedette.VerbGet)
		get.Timeout = o.timeout
		out, ok, err := run.ReadIfExists(ctx, "read "+d.DisplayName(), get)
		if !ok {
			return out, false, err
		}
		before = out
	}
	op := client.Operation{Timeout: o.timeout,
		Args: vedette.ApplyArgs{Manifest: d.Raw, Fields: o.fields, Namespace: d.Metadata.Namespace, Strategy: o.strategy(),
			Compare: !o.serverSide && !o.change.IsDryRun()}}
	out, ok, err := run.Execute(ctx, fmt.Sprintf("apply %s of %s", d.DisplayName(), d.Source), op)
	if ok {
		run.Report(out, d.DisplayName(), o.actionWord(out, before))
	}
	return out, ok, err
}

func (o applyOptions) strategy() vedette.Strategy {
	switch {
	case o.force:
		return vedette.StrategyForceConflicts
	case o.serverSide:
		return vedette.StrategyServerSide
	}
	return vedette.StrategyDefault
}

// actionWord returns kubectl's word for the result of an apply. A client-side dry run cannot
// know whether the object exists.
func (o applyOptions) actionWord(out, before client.Outcome) string {
	switch {
	case o.serverSide:
		return "serverside-applied"
	case o.change.IsClientDryRun():
		return "applied"
	case out.Status == http.StatusCreated:
		return "created"
	case out.Unchanged, o.change.IsDryRun() && sameContent(before, out):
		return "unchanged"
	}
	return "configured"
}

// identity identifies one version of an object.
type identity struct{ UID, ResourceVersion, Namespace string }

// identityOf returns the identity of the object in an outcome; it is empty if there is not
// exactly one.
func identityOf(out client.Outcome) identity {
	var o struct{ Metadata identity }
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &o) != nil {
		return identity{}
	}
	return o.Metadata
}

// sameContent reports whether two outcomes have the same object, except for fields that API
// servers maintain. Versions are not compared, because a dry run does not change them.
func sameContent(a, b client.Outcome) bool {
	var trees [2]map[string]any
	for i, out := range []client.Outcome{a, b} {
		if len(out.Objects) != 1 {
			return false
		}
		var err error
		trees[i], err = manifests.Decode(out.Objects[0])
		if err != nil {
			return false
		}
		metadata := manifests.EnsureMap(trees[i], "metadata")
		for _, name := range []string{"generation", "resourceVersion", "managedFields"} {
			delete(metadata, name)
		}
	}
	return reflect.DeepEqual(trees[0], trees[1])
}
