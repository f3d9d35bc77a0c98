package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const eventsLong = `Show the Events of one or more clusters, in the order of time.

Agents do not report Events, because there are too many. They are read from the clusters, so
-n, -A or --account is needed. With --watch, they are read every two seconds.`

const eventsExample = `  vedette events -n shop --account 'prod-*'
  vedette events --for pod/web-0 -n shop --account prod-eu --watch
  vedette events -A --types Warning`

// eventOptions are the flags of events.
type eventOptions struct {
	getOptions
	object string // --for
	types  []string
}

func newEvents() *cobra.Command {
	var o eventOptions
	cmd := &cobra.Command{
		Use:     "events [--for TYPE/NAME] [--types Normal,Warning] [--watch]",
		Short:   "Show Events of one or more clusters in the order of time",
		Long:    eventsLong,
		Example: eventsExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := o.newGetter(cmd)
			if err != nil {
				return err
			}
			reader, err := newEventReader(g, o.object, o.types)
			if err != nil {
				return err
			}
			reader.withCounts = true
			return reader.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "Show only Events of this namespace. Defaults to the namespace of the context.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show Events of all namespaces.")
	target.AddAccountsFlag(cmd, &o.account)
	flags.StringVar(&o.object, "for", "", "Show only Events about this object (pod/web-0).")
	flags.StringSliceVar(&o.types, "types", nil, "Types of the Events: Normal or Warning. Defaults to all.")
	flags.StringVarP(&o.output, "output", "o", "", objectformat.Usage)
	flags.BoolVarP(&o.watch, "watch", "w", false, "After showing the Events, watch for more.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print the header of the table.")
	flags.IntVar(&o.chunkSize, "chunk-size", 500, "Accepted without effect: agents read pages of 500.")
	o.addTemplateFlags(flags)
	return cmd
}

// isEventKind reports whether a kind, as a user or a cluster names it, is that of Events.
func isEventKind(kind string) bool {
	name, group, _ := strings.Cut(strings.ToLower(kind), ".")
	return slices.Contains([]string{"event", "events", "ev"}, name) && (group == "" || group == "events.k8s.io")
}

// watchEvents is get --watch of Events.
func (g *getter) watchEvents(ctx context.Context) error {
	reader, err := newEventReader(g, "", nil) //nolint:contextcheck // it takes the context of the command
	if err != nil {
		return err
	}
	return reader.run(ctx)
}

// eventReader reads the Events of several clusters, and prints them as one list.
type eventReader struct {
	*getter
	fan        *fanout.FanOut
	args       vedette.Args // of the operation that reads them
	types      []string
	withCounts bool // show how often an Event happened, as kubectl events does

	seen  map[eventKey]string // the versions that were printed
	table *output.Table
}

type eventKey struct{ account, uid string }

func newEventReader(g *getter, object string, types []string) (*eventReader, error) {
	for _, t := range types {
		if !strings.EqualFold(t, "Normal") && !strings.EqualFold(t, "Warning") {
			return nil, vedette.Errorf(vedette.Invalid, "valid --types are Normal or Warning, got %q", t)
		}
	}
	if g.namespace == "" && !g.allNamespaces && g.account == "" {
		return nil, vedette.Errorf(vedette.Invalid, "Events are read from the clusters: select a namespace with -n, all with -A, or accounts with --account")
	}
	args, err := eventArgs(g, object)
	if err != nil {
		return nil, err
	}
	if g.watch { // a cluster that fails does so in each round
		g.errOut = &distinctLines{to: g.errOut, seen: map[string]bool{}}
		g.cmd.SetErr(g.errOut)
	}
	fan, err := fanout.New(g.cmd, cmp.Or(g.account, "*"))
	if err != nil {
		return nil, err
	}
	return &eventReader{getter: g, fan: fan, args: args, types: types, seen: map[eventKey]string{}}, nil
}

// eventArgs returns the operation that reads Events: all of a namespace, or those about an object.
func eventArgs(g *getter, object string) (vedette.Args, error) {
	list := vedette.ListArgs{Target: vedette.Target{Kind: "Event", APIVersion: "v1", Namespace: g.namespace}, LabelSelector: g.selector,
		FieldSelector: g.fields.String()}
	if object == "" {
		return list, nil
	}
	args, err := target.ParseResourceArgs([]string{object})
	if err != nil || len(args) != 1 || args[0].Name == "" || args[0].Account != "" {
		return nil, vedette.Errorf(vedette.Invalid, "--for must be in resource/name form, got %q", object)
	}
	if !g.allNamespaces {
		return vedette.EventsArgs{Target: vedette.Target{Kind: args[0].Kind, Namespace: g.namespace, Name: args[0].Name}}, nil
	}
	kind := kindOf(args[0].Kind)
	if kind.Name == "" {
		return nil, vedette.Errorf(vedette.Invalid, "--for %s with -A needs a kind that every cluster has: select a namespace with -n", object)
	}
	list.FieldSelector = fields.Set{"involvedObject.kind": kind.Name, "involvedObject.name": args[0].Name}.AsSelector().String()
	return list, nil
}

// eventInterval is the time from one read of all clusters to the next.
const eventInterval = 2 * time.Second

// run prints the Events and, with --watch, those that follow, until it is interrupted.
func (r *eventReader) run(ctx context.Context) error {
	found, err := r.read(ctx)
	switch {
	case err != nil && (!fanout.IsPartial(err) || ctx.Err() != nil):
		return err
	case !r.watch && len(found) == 0 && err == nil:
		r.printNoEvents()
		return nil
	case !r.watch:
		return errors.Join(r.print(found), err)
	}
	if r.watchOnly {
		r.markSeen(found)
	} else if err := r.printNew(found); err != nil {
		return err
	}
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // interrupted: a watch has no other end
		case <-ticker.C:
		}
		found, err := r.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !fanout.IsPartial(err) {
			fmt.Fprintf(r.errOut, "%v: trying again\n", err)
			continue
		}
		if err := r.printNew(found); err != nil {
			return err
		}
	}
}

func (r *eventReader) printNoEvents() {
	where := ""
	if r.namespace != "" {
		where = " in " + r.namespace + " namespace"
	}
	fmt.Fprintf(r.errOut, "No events found%s.\n", where)
}

// read returns the Events of all clusters in the order of time.
func (r *eventReader) read(ctx context.Context) ([]liveObject, error) {
	found, err := fanout.Collect(ctx, r.fan, func(ctx context.Context, run *fanout.Run) ([]liveObject, error) {
		out, ok, err := run.Execute(ctx, "list events", client.Operation{Args: r.args})
		if !ok {
			return nil, err
		}
		objects, _ := decodeLive(run, "list events", out.Objects) // a failure was counted
		return objects, nil
	})
	all := slices.DeleteFunc(slices.Concat(slices.Collect(maps.Values(found))...), func(o liveObject) bool {
		return len(r.types) > 0 && !slices.ContainsFunc(r.types, func(t string) bool { return strings.EqualFold(t, o.Type) })
	})
	slices.SortFunc(all, func(a, b liveObject) int {
		return cmp.Or(a.lastSeen().Compare(b.lastSeen()), cmp.Compare(a.account, b.account),
			cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return all, err
}

// markSeen notes what exists, and returns what was not there before in this version. Events that are gone are forgotten, so
// that a watch of days does not grow; those of accounts that failed this time may still exist.
func (r *eventReader) markSeen(all []liveObject) (unseen []liveObject) {
	next := make(map[eventKey]string, len(all))
	failed := r.fan.FailedAccounts()
	for key, version := range r.seen {
		if slices.Contains(failed, key.account) {
			next[key] = version
		}
	}
	for _, o := range all {
		key := eventKey{o.account, o.Metadata.UID}
		if version, ok := r.seen[key]; !ok || version != o.Metadata.ResourceVersion {
			unseen = append(unseen, o)
		}
		next[key] = o.Metadata.ResourceVersion
	}
	r.seen = next
	return unseen
}

func (r *eventReader) printNew(all []liveObject) error {
	unseen := r.markSeen(all)
	if len(unseen) == 0 && r.table != nil {
		return nil
	}
	if r.format.IsTable() || r.format.Name() == objectformat.Name || r.format.Columns() != nil {
		return r.print(unseen)
	}
	for _, o := range unseen { // one document each, as in other watches
		if err := r.print([]liveObject{o}); err != nil {
			return err
		}
	}
	return nil
}

func (r *eventReader) print(events []liveObject) error {
	switch {
	case r.format.Name() == objectformat.Name:
		return r.printLive(events, 0)
	case !r.format.IsTable():
		return r.printObjects(events)
	}
	if r.table == nil {
		r.table = r.newTextTable(eventHeader...)
	}
	now := time.Now()
	for _, o := range events {
		cells := o.cells(true, now)
		if r.withCounts {
			cells[2] = o.interval(now)
		}
		r.table.Add(cells)
	}
	r.out.Table(r.table)
	return r.out.Flush()
}

// printObjects prints Events as a document, by a template or as custom columns.
func (r *eventReader) printObjects(events []liveObject) error {
	p := &manifestPrinter{getter: r.getter, items: []any{}}
	for _, o := range events {
		if _, err := p.add(o.manifest()); err != nil {
			return err
		}
	}
	return p.print(r.watch)
}

// interval returns when an Event happened last, how often, and since when, as kubectl events does: "3m (x12 over 20m)".
func (o liveObject) interval(now time.Time) string {
	first := o.EventTime
	for _, t := range []time.Time{o.FirstTimestamp, o.DeprecatedFirstTimestamp} {
		if first.IsZero() {
			first = t
		}
	}
	count := max(o.Series.Count, o.Count, o.DeprecatedCount)
	if count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", age(o.lastSeen(), now), count, age(first, now))
	}
	if first.IsZero() {
		first = o.lastSeen()
	}
	return age(first, now)
}

// maxDistinctLines bounds the lines that are remembered.
const maxDistinctLines = 10_000

// distinctLines writes each line once.
type distinctLines struct {
	to   io.Writer
	mu   sync.Mutex
	seen map[string]bool
}

func (d *distinctLines) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for line := range strings.Lines(string(text)) {
		if d.seen[line] {
			continue
		}
		if len(d.seen) < maxDistinctLines {
			d.seen[line] = true
		}
		if _, err := io.WriteString(d.to, line); err != nil {
			return 0, fmt.Errorf("write a message: %w", err)
		}
	}
	return len(text), nil
}
