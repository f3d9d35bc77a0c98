package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// runWatch shows what is there and goes on with what changes, until it is
// interrupted. A stream that breaks is taken up again; what did not change in
// between is not shown anew.
func (g *getter) runWatch(ctx context.Context, targets []target) error {
	if len(targets) != 1 {
		return vedette.Errorf(vedette.Invalid, "%d kinds or names are asked for, and one at a time can be watched", len(targets))
	}
	w := &watcher{getter: g, query: g.query(targets[0]), known: map[string]*shownRow{}}
	switch g.output {
	case "json", "yaml":
		w.query.Manifests = true
	default:
		w.query.Table = true
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 500*time.Millisecond, 15*time.Second
	for {
		w.ready = false
		err := w.client.Changes(ctx, w.query, w.event)
		if ctx.Err() != nil {
			return nil // interrupted, which is how a watch ends
		}
		if w.ready {
			wait.Reset()
		}
		if !w.began || final(err) {
			return err
		}
		if !errors.Is(err, errLagged) {
			fmt.Fprintf(g.errOut, "the stream of changes broke (%v); trying again\n", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// final reports whether trying again would be in vain.
func final(err error) bool {
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.NotFound, vedette.Denied:
		return true
	}
	return errors.Is(err, errOutput)
}

var (
	errLagged = errors.New("the stream was too fast for this reader")
	errOutput = errors.New("write the output")
)

// watcher shows one stream after the other as if they were one.
type watcher struct {
	*getter
	query  client.Query
	layout *layout
	known  map[string]*shownRow // by path
	ready  bool                 // this stream has told all that was there
	began  bool                 // some stream was ready
}

// shownRow is what the reader saw last of an object.
type shownRow struct {
	version string
	cells   []string
	seen    bool // in this stream
}

func (w *watcher) event(e client.Event) error {
	switch e.Type {
	case "columns":
		return w.columns(e.Data)
	case "added", "modified":
		return w.changed(e.Data)
	case "deleted":
		return w.deleted(e.Data)
	case "ready":
		return w.caughtUp(e.Data)
	case "heartbeat":
		return w.freshness(e.Data)
	case "lagged":
		return errLagged
	case "error":
		return e.Err()
	}
	return nil // of a newer server
}

func (w *watcher) columns(data []byte) error {
	var c client.Columns
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("read columns: %w", err)
	}
	for _, known := range w.known {
		known.seen = false
	}
	if w.layout != nil {
		return nil // the server's may have changed, but heads are printed once
	}
	w.layout = newLayout(c, w.output == "wide", false)
	if !w.noHeaders && w.output != "name" {
		w.layout.add(w.layout.header())
	}
	return nil
}

func (w *watcher) changed(data []byte) error {
	if w.query.Manifests {
		return w.changedManifest(data)
	}
	var row client.Row
	if err := json.Unmarshal(data, &row); err != nil || w.layout == nil {
		return errors.Join(errors.New("read a change"), err)
	}
	key := path(row.Account, w.layout.columns.Kind, row.Namespace, row.Name)
	last := w.known[key]
	cells := w.layout.row(row)
	w.known[key] = &shownRow{version: row.ResourceVersion, cells: cells, seen: true}
	if last != nil && last.version == row.ResourceVersion {
		return nil
	}
	return w.show(key, cells)
}

func (w *watcher) changedManifest(data []byte) error {
	var o client.Object
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("read a change: %w", err)
	}
	key := path(o.Account, o.Kind, o.Namespace, o.Name)
	last := w.known[key]
	w.known[key] = &shownRow{version: o.ResourceVersion, seen: true}
	if last != nil && last.version == o.ResourceVersion {
		return nil
	}
	m, err := marked(o)
	if err != nil {
		return err
	}
	text, err := encodeDocument(m, w.output)
	if err != nil {
		return err
	}
	if w.output == "yaml" {
		text = "---\n" + text
	}
	w.out.line(text)
	return w.flush()
}

// show prints a line, or keeps it for the table that is printed once all that
// was there is known.
func (w *watcher) show(key string, cells []string) error {
	if w.output == "name" {
		w.out.line(key)
		return w.flush()
	}
	w.layout.add(cells)
	if !w.began {
		return nil
	}
	w.out.table(w.layout)
	return w.flush()
}

func (w *watcher) flush() error {
	if err := w.out.flush(); err != nil {
		return errors.Join(errOutput, err)
	}
	return nil
}

func (w *watcher) deleted(data []byte) error {
	var o client.Object
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("read a deletion: %w", err)
	}
	return w.gone(path(o.Account, o.Kind, o.Namespace, o.Name))
}

// gone shows the last line of an object once more, with "<deleted>" where its
// status stood, or its first cell where it has none.
func (w *watcher) gone(key string) error {
	last := w.known[key]
	delete(w.known, key)
	if last == nil || last.cells == nil {
		return nil
	}
	at := w.layout.status
	if at < 0 {
		at = len(w.layout.header()) - len(w.layout.shown())
	}
	if at >= len(last.cells) {
		return nil
	}
	last.cells[at] = "<deleted>"
	return w.show(key, last.cells)
}

// caughtUp ends the part of a stream that tells what is there. What was known
// from an earlier stream and was not told again is gone.
func (w *watcher) caughtUp(data []byte) error {
	w.ready, w.began = true, true
	for key, known := range w.known {
		if !known.seen {
			if err := w.gone(key); err != nil {
				return err
			}
		}
	}
	if w.layout != nil {
		w.out.table(w.layout)
	}
	return errors.Join(w.flush(), w.freshness(data))
}

func (w *watcher) freshness(data []byte) error {
	var f struct{ Freshness []client.FeedFreshness }
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("read how fresh the changes are: %w", err)
	}
	w.warn(f.Freshness)
	return nil
}
