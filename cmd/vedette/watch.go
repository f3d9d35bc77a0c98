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

// runWatch shows what is there and goes on with what changes, until it is
// interrupted. A stream that breaks is taken up again; what did not change in
// between is not shown anew.
func (g *getter) runWatch(ctx context.Context, resourceArgs []target.ResourceArg) error {
	if len(resourceArgs) != 1 {
		return vedette.Errorf(vedette.Invalid, "%d kinds or names are asked for, and one at a time can be watched", len(resourceArgs))
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
			return nil // interrupted, which is how a watch ends
		}
		if w.ready {
			retryDelay.Reset()
		}
		if !w.started || isPermanent(err) {
			return err
		}
		if !errors.Is(err, errLagged) {
			fmt.Fprintf(g.errOut, "the stream of changes broke (%v); trying again\n", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryDelay.NextBackOff()):
		}
	}
}

// isPermanent reports whether trying again would be in vain.
func isPermanent(err error) bool {
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.NotFound, vedette.Denied:
		return true
	}
	return errors.Is(err, output.ErrWrite)
}

var errLagged = errors.New("the stream was too fast for this reader")

// watcher shows one stream after the other as if they were one.
type watcher struct {
	*getter
	query   client.Query
	layout  *output.Table
	rows    map[string]*shownRow // by path
	ready   bool                 // this stream has told all that was there
	started bool                 // some stream was ready
}

// shownRow is what the reader saw last of an object.
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
	return nil // of a newer server
}

func (w *watcher) handleColumns(data []byte) error {
	var c client.Columns
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("read columns: %w", err)
	}
	for _, row := range w.rows {
		row.seen = false
	}
	if w.layout != nil {
		return nil // the server's may have changed, but heads are printed once
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
		return errors.Join(errors.New("read a change"), err)
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
		return fmt.Errorf("read a change: %w", err)
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
	w.out.Line(text)
	return w.flush()
}

// show prints a line, or keeps it for the table that is printed once all that
// was there is known.
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
		return fmt.Errorf("read a deletion: %w", err)
	}
	return w.showDeleted(output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name))
}

// showDeleted shows the last line of an object once more, with "<deleted>" where its
// status stood, or its first cell where it has none.
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

// handleReady ends the part of a stream that tells what is there. What was known
// from an earlier stream and was not told again is gone.
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
	var f struct{ Freshness []client.FeedFreshness }
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("read how fresh the changes are: %w", err)
	}
	w.warnStale(f.Freshness)
	return nil
}
