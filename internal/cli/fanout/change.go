package fanout

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// ChangeOptions is how a command changes something: really or as a dry run, and what it
// prints of that.
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
)

func (o *ChangeOptions) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dryRun, "dry-run", dryRunNone, "server has the clusters judge what would be done, and change nothing; client prints it and asks nobody")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "unsaid"
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "name, json or yaml of the objects as they are then; a line for each if not given")
}

// AddYesFlag is the flag of commands that can change everything in several accounts.
func (o *ChangeOptions) AddYesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do it though --all means all objects of several accounts")
}

func (o ChangeOptions) Validate(outputs ...string) error {
	switch o.dryRun {
	case dryRunNone, dryRunServer, dryRunClient, "":
	case "unsaid":
		return vedette.Errorf(vedette.Invalid, "say with --dry-run=server or --dry-run=client which dry run is meant")
	default:
		return vedette.Errorf(vedette.Invalid, "--dry-run is %q and may be none, server or client", o.dryRun)
	}
	for _, format := range append(outputs, "", "name") {
		if o.Output == format {
			return nil
		}
	}
	if len(outputs) == 0 {
		return vedette.Errorf(vedette.Invalid, "there is no output format %q: write name after -o", o.Output)
	}
	return vedette.Errorf(vedette.Invalid, "there is no output format %q: write name, json or yaml after -o", o.Output)
}

// IsDryRun reports whether nothing is to be changed.
func (o ChangeOptions) IsDryRun() bool { return o.dryRun == dryRunServer || o.IsClientDryRun() }

// IsClientDryRun reports whether nothing is even to be asked.
func (o ChangeOptions) IsClientDryRun() bool { return o.dryRun == dryRunClient }

// Suffix is what kubectl writes behind a deed that was none.
func (o ChangeOptions) Suffix() string {
	switch o.dryRun {
	case dryRunServer:
		return " (server dry run)"
	case dryRunClient:
		return " (dry run)"
	}
	return ""
}

// ConfirmMany refuses to change everything in several accounts at once, unless somebody
// said that they know. One pattern that fits more accounts than was thought is not
// to empty them.
func (o ChangeOptions) ConfirmMany(what string, accounts []string) error {
	if len(accounts) < 2 || o.yes || o.IsDryRun() {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "this would %s in %d accounts (%s): look at it with --dry-run=server, and say --yes to have it done", what, len(accounts), abbreviate(accounts))
}

// clientDryRunOutcome is the outcome of an operation that a client-side dry run keeps to itself:
// that what was written is done.
func clientDryRunOutcome(o client.Operation) client.Outcome {
	out := client.Outcome{State: vedette.Done, Status: 200, Keys: []client.Key{{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}}
	if o.Verb != vedette.VerbApply {
		return out
	}
	out.Keys = nil
	out.Objects = []json.RawMessage{manifests.WithNamespace(o.Manifest, o.Namespace)}
	return out
}

// Report tells of an object that was changed, in the form that was asked for.
func (r *Run) Report(out client.Outcome, name, action string) {
	switch r.fanOut.change.Output {
	case "":
		r.Printf("%s %s%s", output.ObjectName(out, name), action, r.fanOut.change.Suffix())
	case "name":
		r.ReportNames(out, name)
	default:
		if len(out.Objects) == 0 {
			r.Warnf("%s: %s %s; the object is not told", r.Account, output.ObjectName(out, name), action)
		}
		r.objects = append(r.objects, out.Objects...)
	}
}

// ReportNames prints the names of objects, as get does.
func (r *Run) ReportNames(out client.Outcome, name string) {
	if r.Account == "" || len(out.Keys) == 0 {
		r.writeLine(output.ObjectName(out, name), false)
		return
	}
	for _, key := range out.Keys {
		r.writeLine(output.ObjectPath(r.Account, key.Kind, key.Namespace, key.Name), false)
	}
}

// printObjects prints all objects that were reported: one as itself, several as a
// List. Which account they are of they tell where there are several.
func (fan *FanOut) printObjects() error {
	var items []any
	for _, run := range fan.runs {
		for _, raw := range run.objects {
			m, err := manifests.Decode(raw)
			if err != nil {
				return fmt.Errorf("read an object of %s: %w", run.Account, err)
			}
			if len(fan.Accounts) > 1 {
				manifests.EnsureMap(manifests.EnsureMap(m, "metadata"), "annotations")[manifests.AccountAnnotation] = run.Account
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
