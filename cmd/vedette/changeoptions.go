package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// changeOptions is how a command changes something: really or as a dry run, and what it
// prints of that.
type changeOptions struct {
	dryRun string
	output string
	yes    bool
}

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunServer = "server"
	dryRunClient = "client"
)

func (o *changeOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dryRun, "dry-run", dryRunNone, "server has the clusters judge what would be done, and change nothing; client prints it and asks nobody")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "unsaid"
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "name, json or yaml of the objects as they are then; a line for each if not given")
}

// addYesFlag is the flag of commands that can change everything in several accounts.
func (o *changeOptions) addYesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do it though --all means all objects of several accounts")
}

func (o changeOptions) validate(outputs ...string) error {
	switch o.dryRun {
	case dryRunNone, dryRunServer, dryRunClient, "":
	case "unsaid":
		return vedette.Errorf(vedette.Invalid, "say with --dry-run=server or --dry-run=client which dry run is meant")
	default:
		return vedette.Errorf(vedette.Invalid, "--dry-run is %q and may be none, server or client", o.dryRun)
	}
	for _, format := range append(outputs, "", "name") {
		if o.output == format {
			return nil
		}
	}
	if len(outputs) == 0 {
		return vedette.Errorf(vedette.Invalid, "there is no output format %q: write name after -o", o.output)
	}
	return vedette.Errorf(vedette.Invalid, "there is no output format %q: write name, json or yaml after -o", o.output)
}

// isDryRun reports whether nothing is to be changed.
func (o changeOptions) isDryRun() bool { return o.dryRun == dryRunServer || o.isClientDryRun() }

// isClientDryRun reports whether nothing is even to be asked.
func (o changeOptions) isClientDryRun() bool { return o.dryRun == dryRunClient }

// suffix is what kubectl writes behind a deed that was none.
func (o changeOptions) suffix() string {
	switch o.dryRun {
	case dryRunServer:
		return " (server dry run)"
	case dryRunClient:
		return " (dry run)"
	}
	return ""
}

// confirmMany refuses to change everything in several accounts at once, unless somebody
// said that they know. One pattern that fits more accounts than was thought is not
// to empty them.
func (o changeOptions) confirmMany(what string, accounts []string) error {
	if len(accounts) < 2 || o.yes || o.isDryRun() {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "this would %s in %d accounts (%s): look at it with --dry-run=server, and say --yes to have it done", what, len(accounts), abbreviate(accounts))
}

// clientDryRunOutcome is the outcome of an operation that a client-side dry run keeps to itself:
// that what was written is done.
func clientDryRunOutcome(o client.Operation) client.Outcome {
	target := vedette.TargetOf(o.Args)
	out := client.Outcome{State: vedette.Done, Status: 200, Keys: []client.Key{{Kind: target.Kind, Namespace: target.Namespace, Name: target.Name}}}
	apply, ok := o.Args.(vedette.ApplyArgs)
	if !ok {
		return out
	}
	out.Keys = nil
	out.Objects = []json.RawMessage{withNamespace(apply.Manifest, apply.Namespace)}
	return out
}

// withNamespace is a manifest with the namespace that a flag gave it.
func withNamespace(raw json.RawMessage, namespace string) json.RawMessage {
	m, err := decodeManifest(raw)
	if err != nil || namespace == "" {
		return raw
	}
	ensureMap(m, "metadata")["namespace"] = namespace
	updated, err := json.Marshal(m)
	if err != nil { // it was decoded
		panic(err)
	}
	return updated
}

// report tells of an object that was changed, in the form that was asked for.
func (r *accountRun) report(out client.Outcome, name, action string) {
	switch r.fanOut.change.output {
	case "":
		r.printf("%s %s%s", objectDisplayName(out, name), action, r.fanOut.change.suffix())
	case "name":
		r.reportNames(out, name)
	default:
		if len(out.Objects) == 0 {
			r.warnf("%s: %s %s; the object is not told", r.account, objectDisplayName(out, name), action)
		}
		r.objects = append(r.objects, out.Objects...)
	}
}

// reportNames prints the names of objects, as get does.
func (r *accountRun) reportNames(out client.Outcome, name string) {
	if r.account == "" || len(out.Keys) == 0 {
		r.writeLine(objectDisplayName(out, name), false)
		return
	}
	for _, key := range out.Keys {
		r.writeLine(objectPath(r.account, key.Kind, key.Namespace, key.Name), false)
	}
}

// printObjects prints all objects that were reported: one as itself, several as a
// List. Which account they are of they tell where there are several.
func (fan *fanOut) printObjects() error {
	var items []any
	for _, run := range fan.runs {
		for _, raw := range run.objects {
			m, err := decodeManifest(raw)
			if err != nil {
				return fmt.Errorf("read an object of %s: %w", run.account, err)
			}
			if len(fan.accounts) > 1 {
				ensureMap(ensureMap(m, "metadata"), "annotations")[accountAnnotation] = run.account
			}
			items = append(items, m)
		}
	}
	if len(items) == 0 {
		return nil
	}
	document := newList(items)
	if len(items) == 1 {
		document = items[0]
	}
	text, err := encodeDocument(document, fan.change.output)
	if err != nil {
		return err
	}
	fan.spin.clear()
	_, err = fmt.Fprintln(fan.out, text)
	return err
}
