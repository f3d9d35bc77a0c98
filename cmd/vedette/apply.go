package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

const applyLong = `Bring objects to what manifests say, in one cluster or in several at once.

The agents apply as kubectl does: by a three-way merge with what was applied last, or
by the API server with --server-side. What kubectl or Spinnaker applied goes on to be
merged. Objects are applied in the order in which they stand in the files; one that
fails does not keep the others, or other clusters, from going on.`

const applyExample = `  vedette apply -f web.yaml
  vedette apply -f manifests/ -R -n shop --account 'prod-*' --wait
  kustomize build . | vedette apply -f - --server-side`

type applyOptions struct {
	documents
	account     string
	serverSide  bool
	force, wait bool
	dryRun      string
	timeout     time.Duration
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
			docs, err := o.load(cmd.InOrStdin())
			if err != nil {
				return err
			}
			c, err := newCrew(cmd, o.account)
			if err != nil {
				return err
			}
			return c.each(cmd.Context(), func(ctx context.Context, h *hand) error { return o.run(ctx, h, docs) })
		},
	}
	flags := cmd.Flags()
	o.documents.flags(cmd)
	accountFlag(cmd, &o.account)
	flags.StringVarP(&o.selector, "selector", "l", "", "only objects of the files with these labels (app=web,tier!=db)")
	flags.BoolVar(&o.serverSide, "server-side", false, "let the API server merge; a field that another manager holds is a conflict")
	flags.BoolVar(&o.force, "force-conflicts", false, "take over such fields; with --server-side")
	flags.StringVar(&o.dryRun, "dry-run", "none", "none; agents can't carry out dry runs")
	flags.BoolVar(&o.wait, "wait", false, "wait until Deployments, StatefulSets and DaemonSets are rolled out")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long each object may take, and with --wait all rollouts together (30s; 5m with --wait)")
	return cmd
}

// flags are those of commands that take files.
func (d *documents) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&d.files, "filename", "f", nil, "files or folders of manifests, - for the standard input")
	cmd.Flags().BoolVarP(&d.recursive, "recursive", "R", false, "go through folders below those of -f too")
	cmd.Flags().StringVarP(&d.namespace, "namespace", "n", "", "namespace of objects that name none; default if not given")
}

func accountFlag(cmd *cobra.Command, account *string) {
	cmd.Flags().StringVar(account, "account", "", "the account, or several by a pattern (prod-*) or joined by commas; not needed where there is one")
}

func (o applyOptions) validate() error {
	switch {
	case len(o.files) == 0:
		return vedette.Errorf(vedette.Invalid, "say with -f which files to apply")
	case o.dryRun != "none" && o.dryRun != "":
		return vedette.Errorf(vedette.Invalid, "agents can't carry out a dry run yet: leave --dry-run=%s out", o.dryRun)
	case o.force && !o.serverSide:
		return vedette.Errorf(vedette.Invalid, "--force-conflicts needs --server-side: only the API server knows conflicts of fields")
	}
	return nil
}

func (o applyOptions) run(ctx context.Context, h *hand, docs []document) error {
	var applied []rollout
	for _, d := range docs {
		out, ok, err := o.apply(ctx, h, d)
		if err != nil {
			return err
		}
		if r, is := rolloutOf(d, out); ok && is && o.wait {
			applied = append(applied, r)
		}
	}
	timeout := o.timeout
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	ends := time.Now().Add(timeout)
	for _, r := range applied {
		if err := r.follow(ctx, h, ends); err != nil {
			return err
		}
	}
	return nil
}

// apply applies one object. What is there is read before, since only the
// difference of both tells whether anything was changed.
func (o applyOptions) apply(ctx context.Context, h *hand, d document) (client.Outcome, bool, error) {
	before := ""
	if !o.serverSide && d.Metadata.Name != "" {
		get := d.on(vedette.VerbGet)
		get.Timeout = o.timeout
		out, err := h.look(ctx, "read "+d.label(), get)
		if err != nil || h.idle {
			return out, false, err
		}
		before = resourceVersion(out)
	}
	op := client.Operation{Verb: vedette.VerbApply, Manifest: d.raw, Namespace: d.Metadata.Namespace, Strategy: string(o.strategy()), Timeout: o.timeout}
	out, ok, err := h.must(ctx, fmt.Sprintf("apply %s of %s", d.label(), d.source), op)
	if ok {
		h.say("%s %s", nameOf(out, d.label()), o.deed(out, before))
	}
	return out, ok, err
}

func (o applyOptions) strategy() vedette.Strategy {
	switch {
	case o.force:
		return vedette.ServerForce
	case o.serverSide:
		return vedette.ServerSide
	}
	return vedette.ByMode
}

// deed is what kubectl says of an apply.
func (o applyOptions) deed(out client.Outcome, before string) string {
	switch {
	case o.serverSide:
		return "serverside-applied"
	case out.Status == 201 || before == "" && !out.Repeated:
		return "created"
	case before == resourceVersion(out):
		return "unchanged"
	}
	return "configured"
}

// resourceVersion returns that of the one object that an outcome tells, ""
// where it tells none.
func resourceVersion(out client.Outcome) string {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &o) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}
