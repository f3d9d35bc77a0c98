package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/views"
)

// liveObject is an object that was read from a cluster, because no agent caches its kind.
// Agents never cache Events, because there are too many, so their fields are shown.
type liveObject struct {
	account, kind string
	raw           json.RawMessage

	APIVersion string
	Kind       string
	Metadata   struct {
		Namespace, Name   string
		CreationTimestamp time.Time
	}
	Type, Reason, Message, Note string
	LastTimestamp, EventTime    time.Time
	DeprecatedLastTimestamp     time.Time // of Events that clients of core/v1 wrote
	InvolvedObject, Regarding   struct{ Kind, Name string }
}

// canReadLive reports whether to read objects that no agent caches from the clusters. The user
// must have selected a namespace, -A or accounts, because a list of everything in all clusters
// is expensive. Clusters cannot select by Spinnaker application.
func (g *getter) canReadLive() bool {
	return g.application == "" && (g.namespace != "" || g.allNamespaces || g.account != "")
}

// liveHint says how to read objects from the clusters, if the flags do not do so yet.
func (g *getter) liveHint() string {
	if g.application != "" || g.canReadLive() {
		return ""
	}
	return "; use -n NAMESPACE, -A or --account to read from the clusters"
}

// mustReadLive reports whether the arguments select kinds that no agent caches. The server
// then has no feed of the kind, or does not know the kind at all. A misspelt kind is not read
// from the clusters, because the server suggests the right one.
func mustReadLive(resourceArgs []target.ResourceArg, cached bool, err error) bool {
	for _, arg := range resourceArgs {
		if arg.Name != "" {
			return false
		}
	}
	if err == nil {
		return !cached
	}
	return strings.Contains(err.Error(), unknownKindPrefix) && !strings.Contains(err.Error(), "did you mean")
}

// unknownKindPrefix begins the server's error for a kind that no agent caches in any account
// (package views). The kind of the error is Invalid, as for other invalid queries.
const unknownKindPrefix = "no agent reports a kind"

// runLive reads objects from the clusters and prints them. The error notCached is that of the
// server; it is returned if no account matches, or if the user must select a namespace first.
func (g *getter) runLive(ctx context.Context, resourceArgs []target.ResourceArg, notCached error) error {
	if !g.canReadLive() {
		if notCached == nil {
			g.printNoneFound(resourceArgs, false)
			return nil
		}
		return fmt.Errorf("%w%s", notCached, g.liveHint())
	}
	pattern := g.account
	if pattern == "" {
		pattern = "*"
	}
	fan, err := fanout.New(g.cmd, pattern) //nolint:contextcheck // it takes the context of the command
	switch {
	case vedette.KindOf(err) == vedette.NotFound: // no account matches
		if notCached == nil {
			g.printNoneFound(resourceArgs, false)
		}
		return notCached
	case err != nil:
		return err
	}
	var mu sync.Mutex
	found := map[string][]liveObject{}
	fanOutErr := fan.ForEachAccount(ctx, func(ctx context.Context, run *fanout.Run) error {
		for _, arg := range resourceArgs {
			objects, err := g.listLive(ctx, run, arg.Kind)
			if err != nil {
				return err
			}
			mu.Lock()
			found[run.Account] = append(found[run.Account], objects...)
			mu.Unlock()
		}
		return nil
	})
	var all []liveObject
	for _, account := range fan.Accounts {
		all = append(all, found[account]...)
	}
	if len(all) == 0 && fanOutErr == nil {
		g.printNoneFound(resourceArgs, true)
		return nil
	}
	if err := g.printLive(all); err != nil {
		return err
	}
	return fanOutErr
}

func (g *getter) listLive(ctx context.Context, run *fanout.Run, kind string) ([]liveObject, error) {
	args := vedette.ListArgs{Target: vedette.Target{Kind: kind, Namespace: g.namespace}, LabelSelector: g.selector}
	out, ok, err := run.Query(ctx, "list "+kind, client.Operation{Args: args})
	if !ok {
		return nil, err
	}
	run.CountSuccess()
	var objects []liveObject
	for _, raw := range out.Objects {
		o := liveObject{account: run.Account, raw: raw}
		if err := json.Unmarshal(raw, &o); err != nil {
			run.Failf("list %s: the cluster returned an invalid object: %v", kind, err)
			return nil, nil
		}
		o.kind = o.Kind
		if group, _, found := strings.Cut(o.APIVersion, "/"); found {
			o.kind += "." + group
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func (g *getter) printLive(all []liveObject) error {
	switch g.output {
	case "json", "yaml":
		items := []any{}
		for _, o := range all {
			m, err := manifests.WithAccountAnnotation(client.Object{Account: o.account, Kind: o.kind, Namespace: o.Metadata.Namespace,
				Name: o.Metadata.Name, Manifest: o.raw})
			if err != nil {
				return err
			}
			items = append(items, m)
		}
		return g.printDocument(manifests.NewList(items))
	case "name":
		for _, o := range all {
			g.out.Line(output.ObjectPath(o.account, o.kind, o.Metadata.Namespace, o.Metadata.Name))
		}
		return g.out.Flush()
	}
	byKind := map[string][]liveObject{}
	for _, o := range all {
		byKind[o.kind] = append(byKind[o.kind], o)
	}
	for i, kind := range slices.Sorted(maps.Keys(byKind)) {
		if i > 0 {
			g.out.Line("")
		}
		g.out.Table(g.liveTable(kind, byKind[kind], time.Now()))
	}
	return g.out.Flush()
}

func (g *getter) liveTable(kind string, objects []liveObject, now time.Time) *output.Table {
	isEvent := kind == "Event" || kind == "Event.events.k8s.io"
	header := []string{"ACCOUNT", "NAMESPACE", "NAME", "AGE"}
	if isEvent {
		header = []string{"ACCOUNT", "NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	}
	table := output.NewTextTable(header)
	if g.noHeaders {
		table = output.NewTextTable(nil)
	}
	for _, o := range objects {
		cells := []string{o.account, o.Metadata.Namespace}
		if isEvent {
			cells = append(cells, o.eventCells(now)...)
		} else {
			cells = append(cells, o.Metadata.Name, age(o.Metadata.CreationTimestamp, now))
		}
		table.Add(cells)
	}
	return table
}

// eventCells returns kubectl's columns for an Event of either API group.
func (o liveObject) eventCells(now time.Time) []string {
	seen, object, message := o.LastTimestamp, o.InvolvedObject, o.Message
	for _, t := range []time.Time{o.DeprecatedLastTimestamp, o.EventTime} {
		if seen.IsZero() {
			seen = t
		}
	}
	if object.Name == "" {
		object = o.Regarding
	}
	if message == "" {
		message = o.Note
	}
	return []string{age(seen, now), o.Type, o.Reason, strings.ToLower(object.Kind) + "/" + object.Name, strings.TrimSpace(message)}
}

func age(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return views.Age(now.Sub(t))
}
