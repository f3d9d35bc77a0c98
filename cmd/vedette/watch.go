package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
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
	w := &watcher{getter: g, query: g.query(resourceArgs[0]), rows: map[string]*shownRow{}}
	switch g.output {
	case "json", "yaml":
		w.query.Manifests = true
	default:
		w.query.Table = true
	}
	retryDelay := backoff.NewExponentialBackOff()
	retryDelay.InitialInterval, retryDelay.MaxInterval = 500*time.Millisecond, 15*time.Second
	for {
		w.ready = false
		err := w.client.Changes(ctx, w.query, w.handleEvent)
		if ctx.Err() != nil {
			return nil // interrupted: a watch has no other end
		}
		if w.ready {
			retryDelay.Reset()
		}
		if !w.started || isPermanent(err) {
			return err
		}
		if !errors.Is(err, errLagged) {
			fmt.Fprintf(g.errOut, "the stream of changes broke, retrying: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryDelay.NextBackOff()):
		}
	}
}

// isPermanent reports whether a retry cannot succeed.
func isPermanent(err error) bool {
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.NotFound, vedette.Denied:
		return true
	}
	return errors.Is(err, output.ErrWrite)
}

var errLagged = errors.New("the server closed the stream, because the reader was too slow")

// watcher prints consecutive streams as one.
type watcher struct {
	*getter
	query   client.Query
	layout  *output.Table
	rows    map[string]*shownRow // by path
	ready   bool                 // this stream has sent all existing objects
	started bool                 // some stream was ready
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
		return w.handleChange(e.Data)
	case "deleted":
		return w.handleDeletion(e.Data)
	case "ready":
		return w.handleReady(e.Data)
	case "heartbeat":
		return w.handleFreshness(e.Data)
	case "lagged":
		return errLagged
	case "error":
		return e.Err()
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
	w.layout = output.NewTable(c, w.output == "wide", false)
	if !w.noHeaders && w.output != "name" {
		w.layout.Add(w.layout.Header())
	}
	return nil
}

func (w *watcher) handleChange(data []byte) error {
	if w.query.Manifests {
		return w.handleManifestChange(data)
	}
	var row client.Row
	if err := json.Unmarshal(data, &row); err != nil || w.layout == nil {
		return errors.Join(errors.New("decode a change"), err)
	}
	key := output.ObjectPath(row.Account, w.layout.Kind(), row.Namespace, row.Name)
	last := w.rows[key]
	cells := w.layout.Row(row)
	w.rows[key] = &shownRow{version: row.ResourceVersion, cells: cells, seen: true}
	if last != nil && last.version == row.ResourceVersion {
		return nil
	}
	return w.show(key, cells)
}

func (w *watcher) handleManifestChange(data []byte) error {
	var o client.Object
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("decode a change: %w", err)
	}
	key := output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name)
	last := w.rows[key]
	w.rows[key] = &shownRow{version: o.ResourceVersion, seen: true}
	if last != nil && last.version == o.ResourceVersion {
		return nil
	}
	m, err := manifests.WithAccountAnnotation(o)
	if err != nil {
		return err
	}
	text, err := manifests.Encode(m, w.output)
	if err != nil {
		return err
	}
	if w.output == "yaml" {
		text = "---\n" + text
	}
	w.out.Document(text)
	return w.flush()
}

// show prints a row. Until all existing objects are known it only adds it to the table, so
// that the columns are as wide as needed.
func (w *watcher) show(key string, cells []string) error {
	if w.output == "name" {
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
	return w.showDeleted(output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name))
}

// showDeleted prints the last row of an object again, with "<deleted>" as its status.
func (w *watcher) showDeleted(key string) error {
	last := w.rows[key]
	delete(w.rows, key)
	if last == nil || last.cells == nil {
		return nil
	}
	if !w.layout.MarkDeleted(last.cells) {
		return nil
	}
	return w.show(key, last.cells)
}

// handleReady handles the end of the existing objects. Objects of an earlier stream that this
// one did not send were deleted in between.
func (w *watcher) handleReady(data []byte) error {
	w.ready, w.started = true, true
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
	return nil
}
