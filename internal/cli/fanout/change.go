package fanout

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// ChangeOptions are the flags of commands that change objects: the dry run and the output.
type ChangeOptions struct {
	dryRun string
	Output string
	yes    bool
}

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunServer = "server"
	dryRunClient = "client"
	dryRunUnset  = "unset" // --dry-run without a value, which kubectl rejects too
)

func (o *ChangeOptions) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dryRun, "dry-run", dryRunNone,
		"none, server or client. server: the API servers validate the changes without storing them. client: print the objects without contacting the server.")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunUnset
	cmd.Flags().StringVarP(&o.Output, "output", "o", "",
		"Output format of the changed objects: name, json or yaml. Defaults to one line for each object.")
}

// AddYesFlag adds --yes, for commands with --all.
func (o *ChangeOptions) AddYesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "Confirm --all for several accounts.")
}

func (o ChangeOptions) Validate(outputs ...string) error {
	switch o.dryRun {
	case dryRunNone, dryRunServer, dryRunClient, "":
	case dryRunUnset:
		return vedette.Errorf(vedette.Invalid, "--dry-run needs a value: use --dry-run=server or --dry-run=client")
	default:
		return vedette.Errorf(vedette.Invalid, "invalid --dry-run %q: use none, server or client", o.dryRun)
	}
	return output.CheckFormat(o.Output, append([]string{"name"}, outputs...)...)
}

// IsDryRun reports whether nothing is changed.
func (o ChangeOptions) IsDryRun() bool { return o.dryRun == dryRunServer || o.IsClientDryRun() }

// IsClientDryRun reports whether the server is not contacted either.
func (o ChangeOptions) IsClientDryRun() bool { return o.dryRun == dryRunClient }

// Suffix returns what kubectl appends to the lines of a dry run.
func (o ChangeOptions) Suffix() string {
	switch o.dryRun {
	case dryRunServer:
		return " (server dry run)"
	case dryRunClient:
		return " (dry run)"
	}
	return ""
}

// ConfirmMany returns an error if a command with --all would change several accounts and
// --yes is not set, because a pattern can match more accounts than its user thinks.
func (o ChangeOptions) ConfirmMany(what string, accounts []string) error {
	if len(accounts) < 2 || o.yes || o.IsDryRun() {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "this would %s in %d accounts (%s): check with --dry-run=server, then confirm with --yes", what,
		len(accounts), abbreviate(accounts))
}

// clientDryRunOutcome returns the outcome of an operation that is not sent: success, with the
// object as the user wrote it.
func clientDryRunOutcome(o client.Operation) client.Outcome {
	target := vedette.TargetOf(o.Args)
	out := client.Outcome{State: vedette.Done, Status: 200,
		Keys: []client.Key{{Kind: target.Kind, Namespace: target.Namespace, Name: target.Name}}}
	apply, ok := o.Args.(vedette.ApplyArgs)
	if !ok {
		return out
	}
	out.Keys = nil
	out.Objects = []json.RawMessage{manifests.WithNamespace(apply.Manifest, apply.Namespace)}
	return out
}

// Change executes an operation, and reports its object as Report does.
func (r *Run) Change(ctx context.Context, what string, o client.Operation, name, action string) error {
	out, ok, err := r.Execute(ctx, what, o)
	if ok {
		r.Report(out, name, action)
	}
	return err
}

// Report prints an object that was changed, in the format of -o. The action is a past
// participle: "configured".
func (r *Run) Report(out client.Outcome, name, action string) {
	switch r.fanOut.change.Output {
	case "":
		r.Printf("%s %s%s", output.ObjectName(out, name), action, r.fanOut.change.Suffix())
	case "name":
		r.ReportNames(out, name)
	default:
		if len(out.Objects) == 0 {
			r.Warnf("%s: %s %s; the agent did not return the object", r.Account, output.ObjectName(out, name), action)
		}
		r.objects = append(r.objects, out.Objects...)
	}
}

// ReportNames prints the names of objects as `vedette get -o name` does.
func (r *Run) ReportNames(out client.Outcome, name string) {
	if r.Account == "" || len(out.Keys) == 0 {
		r.PrintLine(output.ObjectName(out, name))
		return
	}
	for _, key := range out.Keys {
		r.PrintLine(output.ObjectPath(r.Account, key.Kind, key.Namespace, key.Name))
	}
}

// printObjects prints the objects that the runs reported: one as itself, several as a List.
// If there are several accounts, an annotation names the account of each.
func (fan *FanOut) printObjects() error {
	var items []any
	for _, run := range fan.runs {
		for _, raw := range run.objects {
			m, err := manifests.Decode(raw)
			if err != nil {
				return fmt.Errorf("decode an object of %s: %w", run.Account, err)
			}
			if len(fan.Accounts) > 1 {
				manifests.EnsureMap(manifests.EnsureMap(m, "metadata"), "annotations")[vedette.AccountAnnotation] = run.Account
			}
			items = append(items, m)
		}
	}
	if len(items) == 0 {
		return nil
	}
	document := manifests.NewList(items)
	if len(items) == 1 {
		document = items[0]
	}
	text, err := manifests.Encode(document, fan.change.Output)
	if err != nil {
		return err
	}
	fan.spin.Clear()
	_, err = fmt.Fprintln(fan.out, text)
	return err
}
