package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

// runWatch prints the objects and then their changes until it is interrupted. If the stream
// breaks, it opens another one, and prints only what changed in between.
func (g *getter) runWatch(ctx context.Context, resourceArgs []target.ResourceArg) error {
	if len(resourceArgs) != 1 {
		return vedette.Errorf(vedette.Invalid, "--watch accepts one kind or name, got %d", len(resourceArgs))
	}
	if isEventKind(resourceArgs[0].Kind) && resourceArgs[0].Name == "" {
		return g.watchEvents(ctx)
	}
	kind, err := g.watchedKind(ctx, resourceArgs)
	if err != nil {
		return err
	}
	if g.fields != nil && !g.fields.IsCached(vedette.ParseKind(kind)) {
		return vedette.Errorf(vedette.Invalid, "--watch cannot evaluate the field selector %q: agents do not report its fields", g.fields)
	}
	if g.sorter != nil {
		fmt.Fprintln(g.errOut, "warning: --watch requested, --sort-by will be ignored for watch events received")
	}
	w := &watcher{getter: g, query: g.query(resourceArgs[0]), rows: map[string]*shownRow{}}
	w.query.Kind = kind
	w.query.Table = g.format.IsTable() || g.format.Name() == objectformat.Name
	w.query.Manifests = !w.query.Table || g.fields != nil
	w.query.Labels = g.showLabels || len(g.labelColumns) > 0
	return w.client.Follow(ctx, w.query, w.handleEvent, func(err error) error {
		if !w.started || client.IsPermanent(err) || errors.Is(err, output.ErrWrite) {
			return err
		}
		if !errors.Is(err, client.ErrLagged) {
			fmt.Fprintf(g.errOut, "the stream of changes broke, retrying: %v\n", err)
		}
		return nil
	})
}

// watchedKind returns the kind that an argument means. Only changes of kinds that agents report can be watched.
func (g *getter) watchedKind(ctx context.Context, resourceArgs []target.ResourceArg) (string, error) {
	selections, err := target.Resolve(ctx, g.client, g.account, g.namespace, resourceArgs)
	if err != nil {
		return "", err
	}
	kinds := selections[0].Kinds
	k := kinds[0]
	switch {
	case len(kinds) > 1:
		return "", vedette.Errorf(vedette.Invalid, "--watch accepts one kind, and %s means %s, %s: name one of them", resourceArgs[0].Kind, k.Kind,
			kinds[1].Kind)
	case !k.IsCached():
		return "", vedette.Errorf(vedette.NotCached,
			"no agent reports %s, so its changes cannot be watched: add it to `kinds` in the configuration of the agents, or leave out --watch", k.Kind)
	}
	for _, note := range k.NotCached {
		g.notices.Add(note.Account+" not cached", fmt.Sprintf("%s: its changes of %s are not shown: %s", note.Account, k.Kind, note.Message))
	}
	g.notices.Flush(noticesHint)
	return k.Kind, nil
}

// watcher prints consecutive streams as one.
type watcher struct {
	*getter
	query   client.Query
	layout  *output.Table
	rows    map[string]*shownRow // by path
	started bool                 // some stream has sent all existing objects
}

// shownRow is the last printed version of an object.
type shownRow struct {
	version string
	cells   []string
	seen    bool // in this stream
}

func (w *watcher) handleEvent(e client.Event) error {
	switch e.Type {
	case "columns":
		return w.handleColumns(e.Data)
	case "added", "modified":
		return w.handleChange(strings.ToUpper(e.Type), e.Data)
	case "deleted":
		return w.handleDeletion(e.Data)
	case "ready":
		return w.handleReady(e.Data)
	case "heartbeat":
		return w.handleFreshness(e.Data)
	}
	return nil // events of newer servers are ignored
}

func (w *watcher) handleColumns(data []byte) error {
	var c client.Columns
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("decode columns: %w", err)
	}
	for _, row := range w.rows {
		row.seen = false
	}
	if w.layout != nil {
		return nil // the columns may have changed, but the header is printed once
	}
	w.layout = output.NewTable(c, w.tableOptions(false))
	if !w.noHeaders && w.format.IsTable() {
		w.layout.Add(w.layout.Header())
	}
	return nil
}

func (w *watcher) handleChange(event string, data []byte) error {
	if !w.query.Table {
		return w.handleManifestChange(event, data)
	}
	var row client.Row
	if err := json.Unmarshal(data, &row); err != nil || w.layout == nil {
		return errors.Join(errors.New("decode a change"), err)
	}
	key := output.ObjectPath(row.Account, w.layout.Kind(), row.Namespace, row.Name)
	if w.fields != nil {
		kind := vedette.ParseKind(w.layout.Kind())
		object, err := decodeRow(kind, row)
		if err != nil {
			return err
		}
		if !w.fields.Matches(kind, object) {
			return w.showDeleted(key)
		}
		row.Labels = (&unstructured.Unstructured{Object: object}).GetLabels()
	}
	last := w.rows[key]
	cells := w.layout.EventRow(event, row)
	w.rows[key] = &shownRow{version: row.ResourceVersion, cells: cells, seen: true}
	if last != nil && last.version == row.ResourceVersion {
		return nil
	}
	return w.show(key, cells)
}

// isHidden reports whether the objects that exist already are not shown.
func (w *watcher) isHidden() bool { return w.watchOnly && !w.started }

func (w *watcher) handleManifestChange(event string, data []byte) error {
	var o client.Object
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("decode a change: %w", err)
	}
	key := output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name)
	object, err := w.decode(o)
	if err != nil {
		return err
	}
	if object == nil { // the field selector does not match any more
		delete(w.rows, key)
		return nil
	}
	last := w.rows[key]
	w.rows[key] = &shownRow{version: o.ResourceVersion, seen: true}
	if last != nil && last.version == o.ResourceVersion || w.isHidden() {
		return nil
	}
	return w.showObject(event, object)
}

// showObject prints an object as a document, by a template or as custom columns.
func (w *watcher) showObject(event string, object map[string]any) error {
	if columns := w.format.Columns(); columns != nil {
		return w.showColumns(columns, object)
	}
	document := object
	if w.outputWatchEvents {
		document = map[string]any{"type": event, "object": object}
	}
	if w.format.IsTemplate() {
		return w.printTemplate(document)
	}
	text, err := manifests.Encode(document, w.format.Name())
	if err != nil {
		return err
	}
	if w.format.Name() == objectformat.YAML {
		text = "---\n" + text
	}
	w.out.Document(text)
	return w.flush()
}

func (w *watcher) showColumns(columns *objectformat.Columns, object map[string]any) error {
	cells, err := columns.Row(object)
	if err != nil {
		return err
	}
	if w.layout == nil {
		w.layout = output.NewTextTable(columns.Header())
	}
	w.layout.Add(cells)
	w.out.Table(w.layout)
	return w.flush()
}

// show prints a row. Until all existing objects are known it only adds it to the table, so
// that the columns are as wide as needed.
func (w *watcher) show(key string, cells []string) error {
	if w.isHidden() {
		return nil
	}
	if w.format.Name() == objectformat.Name {
		w.out.Line(key)
		return w.flush()
	}
	w.layout.Add(cells)
	if !w.started {
		return nil
	}
	w.out.Table(w.layout)
	return w.flush()
}

func (w *watcher) flush() error {
	if err := w.out.Flush(); err != nil {
		return errors.Join(output.ErrWrite, err)
	}
	return nil
}

func (w *watcher) handleDeletion(data []byte) error {
	var o client.Object
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("decode a deletion: %w", err)
	}
	key := output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name)
	if w.query.Table || !w.outputWatchEvents {
		return w.showDeleted(key)
	}
	if last := w.rows[key]; last == nil {
		return nil
	}
	delete(w.rows, key)
	// The server does not send what an object was, and keeping all would take the memory of the fleet.
	kind := vedette.ParseKind(o.Kind)
	return w.showObject("DELETED", map[string]any{"kind": kind.Name, "metadata": map[string]any{"name": o.Name, "namespace": o.Namespace,
		"annotations": map[string]any{vedette.AccountAnnotation: o.Account}}})
}

// showDeleted prints the last row of an object again, with "<deleted>" as its status.
func (w *watcher) showDeleted(key string) error {
	last := w.rows[key]
	delete(w.rows, key)
	if last == nil || last.cells == nil {
		return nil
	}
	if w.outputWatchEvents {
		last.cells[0] = "DELETED"
	} else if !w.layout.MarkDeleted(last.cells) {
		return nil
	}
	return w.show(key, last.cells)
}

// handleReady handles the end of the existing objects. Objects of an earlier stream that this
// one did not send were deleted in between.
func (w *watcher) handleReady(data []byte) error {
	w.started = true
	for key, row := range w.rows {
		if !row.seen {
			if err := w.showDeleted(key); err != nil {
				return err
			}
		}
	}
	if w.layout != nil {
		w.out.Table(w.layout)
	}
	return errors.Join(w.flush(), w.handleFreshness(data))
}

func (w *watcher) handleFreshness(data []byte) error {
	var f client.Freshness
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("decode freshness: %w", err)
	}
	w.warnStale(f)
	w.notices.Flush(noticesHint)
	return nil
}
