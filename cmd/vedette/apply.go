package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

const applyLong = `Bring objects to what manifests say, in one cluster or in several at once.

The agents apply as kubectl does: by a three-way merge with what was applied last, or
by the API server with --server-side. What kubectl or Spinnaker applied goes on to be
merged. Objects are applied in the order in which they stand in the files; one that
fails, or can't be read, does not keep the others, or other clusters, from going on.`

const applyExample = `  vedette apply -f web.yaml
  vedette apply -f manifests/ -R -n shop --account 'prod-*' --wait
  vedette apply -f web.yaml --dry-run=server -o yaml
  vedette apply -f manifests/ -l app=web --prune -n shop
  kustomize build . | vedette apply -f - --server-side`

type applyOptions struct {
	fileOptions
	pruneOptions
	change          changeOptions
	account         string
	serverSide      bool
	fieldValidation string // of --validate
	force, wait     bool
	timeout         time.Duration
}

func newApply() *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:     "apply -f FILE|DIRECTORY|-",
		Short:   "Bring objects to what manifests say",
		Long:    applyLong,
		Example: applyExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			files, err := o.load(cmd.InOrStdin())
			if err != nil {
				return err
			}
			fan, err := newWriteFanOut(cmd, o.account, o.change)
			if err != nil {
				return err
			}
			if o.all {
				if err := o.change.confirmMany("prune --all", fan.accounts); err != nil {
					return err
				}
			}
			fan.loadErrors = files.loadErrors
			return fan.forEachAccount(cmd.Context(), func(ctx context.Context, run *accountRun) error { return o.run(ctx, run, files.documents) })
		},
	}
	flags := cmd.Flags()
	o.fileOptions.addFlags(cmd)
	addAccountFlag(cmd, &o.account)
	flags.StringVarP(&o.selector, "selector", "l", "", "only objects of the files with these labels (app=web,tier!=db)")
	flags.BoolVar(&o.serverSide, "server-side", false, "let the API server merge; a field that another manager holds is a conflict")
	flags.BoolVar(&o.force, "force-conflicts", false, "take over such fields; with --server-side")
	flags.StringVar(&o.fieldValidation, "validate", "", "what becomes of fields that an API server does not know: strict (or true) refuses the manifest, warn drops them and says so, ignore (or false) drops them; as the agents are configured if not given, which is strict")
	flags.Lookup("validate").NoOptDefVal = string(vedette.FieldValidationStrict)
	o.change.addFlags(cmd)
	o.pruneOptions.addFlags(cmd)
	o.change.addYesFlag(cmd)
	flags.BoolVar(&o.wait, "wait", false, "wait until Deployments, StatefulSets and DaemonSets are rolled out")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long each object may take, and with --wait all rollouts together (30s; 5m with --wait)")
	return cmd
}

// addFlags are those of commands that take files.
func (d *fileOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&d.files, "filename", "f", nil, "files or folders of manifests, - for the standard input")
	cmd.Flags().BoolVarP(&d.recursive, "recursive", "R", false, "go through folders below those of -f too")
	cmd.Flags().StringVarP(&d.namespace, "namespace", "n", "", "namespace of objects that name none; default if not given")
}

func addAccountFlag(cmd *cobra.Command, account *string) {
	cmd.Flags().StringVar(account, "account", "", "the account, or several by a pattern (prod-*) or joined by commas; not needed where there is one")
}

func (o applyOptions) validate() error {
	switch {
	case len(o.files) == 0:
		return vedette.Errorf(vedette.Invalid, "say with -f which files to apply")
	case o.force && !o.serverSide:
		return vedette.Errorf(vedette.Invalid, "--force-conflicts needs --server-side: only the API server knows conflicts of fields")
	}
	if _, err := parseFieldValidation(o.fieldValidation); err != nil {
		return err
	}
	if err := o.change.validate("json", "yaml"); err != nil {
		return err
	}
	return o.pruneOptions.validate(o)
}

// parseFieldValidation reads kubectl's words.
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
	return "", vedette.Errorf(vedette.Invalid, "--validate is %q: write strict, warn or ignore", word)
}

func (o applyOptions) run(ctx context.Context, run *accountRun, docs []document) error {
	var rollouts []rollout
	keep := appliedSet{namespaces: map[string]bool{}}
	if o.namespace != "" {
		keep.namespaces[o.namespace] = true
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
		if r, is := rolloutOf(d, out); is && o.wait && !o.change.isDryRun() {
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

// waitForRollouts follows the rollouts that have begun.
func (o applyOptions) waitForRollouts(ctx context.Context, run *accountRun, rollouts []rollout) error {
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

// apply applies one object. Whether that changed anything is not said of what the
// API server was asked to merge, as kubectl does not. Of a dry run only the difference
// to what is there tells it.
func (o applyOptions) apply(ctx context.Context, run *accountRun, d document) (client.Outcome, bool, error) {
	var before client.Outcome
	if d.Metadata.Name == "" {
		run.failf("%s of %s has a generateName and no name: each apply would make another object. Name it, or create it by POST /vedette/v1/operations with the strategy create", d.displayName(), d.source)
		return before, false, nil
	}
	if !o.serverSide && o.change.isDryRun() && !o.change.isClientDryRun() {
		get := d.operation(vedette.VerbGet)
		get.Timeout = o.timeout
		out, err := run.tryExecute(ctx, "read "+d.displayName(), get)
		if err != nil || run.unserved {
			return out, false, err
		}
		before = out
	}
	fields, err := parseFieldValidation(o.fieldValidation)
	if err != nil {
		return client.Outcome{}, false, err
	}
	op := client.Operation{Timeout: o.timeout, Args: vedette.ApplyArgs{Manifest: d.raw, Fields: fields, Namespace: d.Metadata.Namespace, Strategy: o.strategy(d),
		Compare: !o.serverSide && !o.change.isDryRun()}}
	out, ok, err := run.execute(ctx, fmt.Sprintf("apply %s of %s", d.displayName(), d.source), op)
	if ok {
		run.report(out, d.displayName(), o.actionWord(out, before))
	}
	return out, ok, err
}

// strategy is how a document is applied. What is to be pruned some day is applied
// client-side, as kubectl does it: only that leaves the annotation that says so. Of
// a Secret that would hold its data.
func (o applyOptions) strategy(d document) vedette.Strategy {
	switch {
	case o.force:
		return vedette.StrategyForceConflicts
	case o.serverSide:
		return vedette.StrategyServerSide
	case o.prune && !(d.APIVersion == "v1" && d.Kind == "Secret"):
		return vedette.StrategyClientSide
	}
	return vedette.StrategyDefault
}

// actionWord is what kubectl says of an apply. A client-side dry run does not know whether
// the object is there.
func (o applyOptions) actionWord(out, before client.Outcome) string {
	switch {
	case o.serverSide:
		return "serverside-applied"
	case o.change.isClientDryRun():
		return "applied"
	case out.Status == http.StatusCreated:
		return "created"
	case out.Unchanged, o.change.isDryRun() && sameContent(before, out):
		return "unchanged"
	}
	return "configured"
}

// identity tells one object, and one version of it, from all others.
type identity struct{ UID, ResourceVersion, Namespace string }

// identityOf reads that of the one object that an outcome tells.
func identityOf(out client.Outcome) identity {
	var o struct{ Metadata identity }
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &o) != nil {
		return identity{}
	}
	return o.Metadata
}

// sameContent reports whether two objects differ in nothing that somebody wrote: an
// object that a dry run has changed keeps its version.
func sameContent(a, b client.Outcome) bool {
	var trees [2]map[string]any
	for i, out := range []client.Outcome{a, b} {
		if len(out.Objects) != 1 {
			return false
		}
		var err error
		if trees[i], err = decodeManifest(out.Objects[0]); err != nil {
			return false
		}
		metadata := ensureMap(trees[i], "metadata")
		for _, name := range []string{"generation", "resourceVersion", "managedFields"} {
			delete(metadata, name)
		}
	}
	return reflect.DeepEqual(trees[0], trees[1])
}
