package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// manner is how a command changes something: really or as a dry run, and what it
// prints of that.
type manner struct {
	dryRun string
	output string
	yes    bool
}

// The values of --dry-run.
const (
	dryNone   = "none"
	dryServer = "server"
	dryClient = "client"
)

func (m *manner) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.dryRun, "dry-run", dryNone, "server has the clusters judge what would be done, and change nothing; client prints it and asks nobody")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "unsaid"
	cmd.Flags().StringVarP(&m.output, "output", "o", "", "name, json or yaml of the objects as they are then; a line for each if not given")
}

// yesFlag is the flag of commands that can change everything in several accounts.
func (m *manner) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&m.yes, "yes", false, "do it though --all means all objects of several accounts")
}

func (m manner) validate(outputs ...string) error {
	switch m.dryRun {
	case dryNone, dryServer, dryClient, "":
	case "unsaid":
		return vedette.Errorf(vedette.Invalid, "say with --dry-run=server or --dry-run=client which dry run is meant")
	default:
		return vedette.Errorf(vedette.Invalid, "--dry-run is %q and may be none, server or client", m.dryRun)
	}
	for _, format := range append(outputs, "", "name") {
		if m.output == format {
			return nil
		}
	}
	if len(outputs) == 0 {
		return vedette.Errorf(vedette.Invalid, "there is no output format %q: write name after -o", m.output)
	}
	return vedette.Errorf(vedette.Invalid, "there is no output format %q: write name, json or yaml after -o", m.output)
}

// dry reports whether nothing is to be changed.
func (m manner) dry() bool { return m.dryRun == dryServer || m.local() }

// local reports whether nothing is even to be asked.
func (m manner) local() bool { return m.dryRun == dryClient }

// suffix is what kubectl writes behind a deed that was none.
func (m manner) suffix() string {
	switch m.dryRun {
	case dryServer:
		return " (server dry run)"
	case dryClient:
		return " (dry run)"
	}
	return ""
}

// careful refuses to change everything in several accounts at once, unless somebody
// said that they know. One pattern that fits more accounts than was thought is not
// to empty them.
func (m manner) careful(what string, accounts []string) error {
	if len(accounts) < 2 || m.yes || m.dry() {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "this would %s in %d accounts (%s): look at it with --dry-run=server, and say --yes to have it done", what, len(accounts), some(accounts))
}

// unsent is the outcome of an operation that a client-side dry run keeps to itself:
// that what was written is done.
func unsent(o client.Operation) client.Outcome {
	out := client.Outcome{State: vedette.Done, Status: 200, Keys: []client.Key{{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}}
	if o.Verb != vedette.VerbApply {
		return out
	}
	out.Keys = nil
	out.Objects = []json.RawMessage{placed(o.Manifest, o.Namespace)}
	return out
}

// placed is a manifest with the namespace that a flag gave it.
func placed(raw json.RawMessage, namespace string) json.RawMessage {
	m, err := decodeManifest(raw)
	if err != nil || namespace == "" {
		return raw
	}
	member(m, "metadata")["namespace"] = namespace
	moved, err := json.Marshal(m)
	if err != nil { // it was decoded
		panic(err)
	}
	return moved
}

// report tells of an object that was changed, in the form that was asked for.
func (h *hand) report(out client.Outcome, label, deed string) {
	switch h.crew.manner.output {
	case "":
		h.say("%s %s%s", nameOf(out, label), deed, h.crew.manner.suffix())
	case "name":
		h.reportNames(out, label)
	default:
		if len(out.Objects) == 0 {
			h.warn("%s: %s %s; the object is not told", h.account, nameOf(out, label), deed)
		}
		h.objects = append(h.objects, out.Objects...)
	}
}

// reportNames prints the names of objects, as get does.
func (h *hand) reportNames(out client.Outcome, label string) {
	if h.account == "" || len(out.Keys) == 0 {
		h.write(nameOf(out, label), false)
		return
	}
	for _, key := range out.Keys {
		h.write(path(h.account, key.Kind, key.Namespace, key.Name), false)
	}
}

// printObjects prints all objects that were reported: one as itself, several as a
// List. Which account they are of they tell where there are several.
func (c *crew) printObjects() error {
	var items []any
	for _, h := range c.hands {
		for _, raw := range h.objects {
			m, err := decodeManifest(raw)
			if err != nil {
				return fmt.Errorf("read an object of %s: %w", h.account, err)
			}
			if len(c.accounts) > 1 {
				member(member(m, "metadata"), "annotations")[accountAnnotation] = h.account
			}
			items = append(items, m)
		}
	}
	if len(items) == 0 {
		return nil
	}
	document := listOf(items)
	if len(items) == 1 {
		document = items[0]
	}
	text, err := encodeDocument(document, c.manner.output)
	if err != nil {
		return err
	}
	c.spin.clear()
	_, err = fmt.Fprintln(c.out, text)
	return err
}
