package read

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/describe"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const describeLong = `Show objects of one or more clusters in detail, with their Events.

The objects are read from the clusters. Without -n, those of the
context's namespace are shown, or else of default.
If no object has the name, those whose names begin with it are shown.

Pods and Deployments are shown as kubectl shows them, all other kinds with all of their
fields. With several accounts, each description begins with its account.`

const describeExample = `  vedette describe pod web-0 -n shop --account prod-eu
  vedette describe deploy/web -n shop --account 'prod-*'
  vedette describe nodes --account prod-eu`

// describeOptions are the flags of describe.
type describeOptions struct {
	account, namespace, selector string
	allNamespaces, showEvents    bool
	chunkSize                    int
	files                        manifests.Options
}

func newDescribe() *cobra.Command {
	var o describeOptions
	cmd := &cobra.Command{
		Use:     "describe TYPE [NAME|PREFIX...] | TYPE/NAME... | TYPE -l SELECTOR | -f FILE",
		Short:   "Show objects of one or more clusters in detail",
		Long:    describeLong,
		Example: describeExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			g := getOptions{namespace: o.namespace, selector: o.selector, selectOptions: selectOptions{files: o.files}}
			resourceArgs, err := g.resourceArgs(cmd, args)
			switch {
			case err != nil:
				return err
			case o.allNamespaces && o.namespace != "":
				return vedette.Errorf(vedette.Invalid, "-n and -A exclude each other")
			}
			for _, arg := range resourceArgs {
				if arg.Name != "" && (o.allNamespaces || o.selector != "") {
					return vedette.Errorf(vedette.Invalid, "%s %s names an object: it excludes -A and -l", arg.Kind, arg.Name)
				}
			}
			return o.run(cmd, resourceArgs, cmd.Flags().Changed("show-events"))
		},
	}
	flags := cmd.Flags()
	target.AddAccountFlag(cmd, &o.account)
	flags.StringVarP(&o.namespace, "namespace", "n", "", "Namespace of the objects. Defaults to the namespace of the context, then to default.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show objects of all namespaces.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Label selector of the objects (app=web,tier!=db).")
	flags.BoolVar(&o.showEvents, "show-events", true, "Show the Events about the objects. Defaults to false for several objects of a cluster.")
	flags.IntVar(&o.chunkSize, "chunk-size", 500, "Accepted without effect: agents read pages of 500.")
	o.files.AddFileFlags(cmd)
	return cmd
}

func (o describeOptions) run(cmd *cobra.Command, resourceArgs []target.ResourceArg, eventsGiven bool) error {
	pattern := o.account
	for _, arg := range resourceArgs {
		if arg.Account != "" && o.account == "" { // paths name their accounts
			pattern = strings.TrimPrefix(pattern+","+arg.Account, ",")
		}
	}
	fan, err := fanout.New(cmd, pattern)
	if err != nil {
		return err
	}
	d := &describer{describeOptions: o, fan: fan, args: resourceArgs, eventsGiven: eventsGiven, found: make([]bool, len(resourceArgs))}
	err = fan.ForEachAccount(cmd.Context(), d.describeAccount)
	if err != nil && !fanout.IsPartial(err) {
		return err
	}
	errs := []error{err}
	for i, arg := range resourceArgs {
		switch {
		case d.found[i] || err != nil && arg.Name != "": // an account that failed may have it
		case arg.Name != "":
			errs = append(errs, arg.NotFoundError(0, nil))
		default:
			fmt.Fprintf(cmd.ErrOrStderr(), "No resources found%s.\n", o.where())
		}
	}
	return errors.Join(errs...)
}

func (o describeOptions) where() string {
	if o.allNamespaces {
		return ""
	}
	return " in " + cmp.Or(o.namespace, "default") + " namespace"
}

// describer describes the objects that arguments name in several accounts.
type describer struct {
	describeOptions
	fan         *fanout.FanOut
	args        []target.ResourceArg
	eventsGiven bool

	mu    sync.Mutex
	found []bool // which arguments any account has
}

func (d *describer) describeAccount(ctx context.Context, run *fanout.Run) error {
	var all []liveObject
	for i, arg := range d.args {
		if arg.Account != "" && arg.Account != run.Account {
			continue
		}
		objects, err := d.read(ctx, run, arg)
		if err != nil {
			return err
		}
		if len(objects) > 0 {
			d.mu.Lock()
			d.found[i] = true
			d.mu.Unlock()
		}
		all = append(all, objects...)
	}
	for i, o := range all {
		if i > 0 {
			run.PrintLine("")
			run.PrintLine("")
		}
		if err := d.describe(ctx, run, o, d.showEvents && (d.eventsGiven || len(all) == 1)); err != nil {
			return err
		}
	}
	return nil
}

// read returns the objects of an argument in one cluster: the one with its name, those whose names begin with it, or all.
func (d *describer) read(ctx context.Context, run *fanout.Run, arg target.ResourceArg) ([]liveObject, error) {
	reference := vedette.Target{Kind: arg.Kind, Namespace: cmp.Or(arg.Namespace, d.namespace), Name: arg.Name}
	if reference.Namespace == "" && !d.allNamespaces {
		reference.Namespace = "default"
	}
	if arg.Name != "" {
		what := "read " + arg.Kind + "/" + arg.Name
		out, ok, err := run.ReadIfExists(ctx, what, client.Operation{Args: vedette.GetArgs{Target: reference}})
		if !ok {
			return nil, err
		}
		if out.State == vedette.Done {
			return decodeDescribed(run, what, out.Objects, ""), nil
		}
	}
	list := vedette.ListArgs{Target: reference, LabelSelector: d.selector}
	list.Name = ""
	what := "list " + arg.Kind
	out, ok, err := run.Query(ctx, what, client.Operation{Args: list})
	if !ok {
		return nil, err
	}
	return decodeDescribed(run, what, out.Objects, arg.Name), nil
}

// decodeDescribed returns the objects whose names begin with a prefix.
func decodeDescribed(run *fanout.Run, what string, all []json.RawMessage, prefix string) []liveObject {
	objects, _ := decodeLive(run, what, all) // a failure was counted
	objects = slices.DeleteFunc(objects, func(o liveObject) bool { return !strings.HasPrefix(o.Metadata.Name, prefix) })
	slices.SortStableFunc(objects, func(a, b liveObject) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return objects
}

func (d *describer) describe(ctx context.Context, run *fanout.Run, o liveObject, withEvents bool) error {
	object := describe.Object{Manifest: o.raw, ShowEvents: withEvents}
	if len(d.fan.Accounts) > 1 {
		object.Account = run.Account
	}
	if object.ShowEvents {
		events, ok, err := d.events(ctx, run, o)
		if err != nil {
			return err
		}
		object.Events, object.ShowEvents = events, ok
	}
	if o.Kind == "Deployment" {
		sets, err := d.replicaSets(ctx, run, o)
		if err != nil {
			return err
		}
		object.ReplicaSets = sets
	}
	text, err := object.Describe(time.Now())
	if err != nil {
		run.Failf("describe %s/%s: %v", o.Kind, o.Metadata.Name, err)
		return nil
	}
	run.CountSuccess()
	for line := range strings.Lines(text) {
		run.PrintLine(strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// events returns the Events about an object. If they cannot be read, the object is shown without them, which is a failure.
func (d *describer) events(ctx context.Context, run *fanout.Run, o liveObject) ([]describe.Event, bool, error) {
	what := "list the Events of " + o.Kind + "/" + o.Metadata.Name
	about := vedette.Target{Kind: o.Kind, APIVersion: o.APIVersion, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
	out, ok, err := run.Query(ctx, what, client.Operation{Args: vedette.EventsArgs{Target: about}})
	if !ok {
		return nil, false, err
	}
	found, ok := decodeLive(run, what, out.Objects)
	slices.SortStableFunc(found, func(a, b liveObject) int { return a.lastSeen().Compare(b.lastSeen()) })
	now := time.Now()
	var events []describe.Event
	for _, e := range found {
		message := e.text()
		if path := e.InvolvedObject.FieldPath; path != "" {
			message = path + ": " + message
		}
		events = append(events, describe.Event{Type: e.Type, Reason: e.Reason, Age: e.interval(now),
			From: cmp.Or(e.Source.Component, e.ReportingComponent, e.ReportingController), Message: message})
	}
	return events, ok, nil
}

// replicaSets returns the ReplicaSets that a Deployment's selector matches.
func (d *describer) replicaSets(ctx context.Context, run *fanout.Run, o liveObject) ([]json.RawMessage, error) {
	var deployment struct {
		Spec struct{ Selector *metav1.LabelSelector }
	}
	if err := json.Unmarshal(o.raw, &deployment); err != nil || deployment.Spec.Selector == nil {
		return nil, nil // the API server accepts none; Describe says what is wrong with the object
	}
	list := vedette.ListArgs{Target: vedette.Target{Kind: "ReplicaSet", APIVersion: "apps/v1", Namespace: o.Metadata.Namespace},
		LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector)}
	out, ok, err := run.Query(ctx, "list the ReplicaSets of "+o.Metadata.Name, client.Operation{Args: list})
	if !ok {
		return nil, err
	}
	return out.Objects, nil
}
