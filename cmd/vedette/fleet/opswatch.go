package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// opsWatch shows operations when they are accepted and when they end. It asks for what was accepted or has ended since
// the last answer, and somewhat before: by durations, so that the clocks of server and client may differ.
type opsWatch struct {
	list   *opsList
	client *client.Client
	out    *output.Printer
	errOut io.Writer
	table  *output.Table
	shown  map[string]string // the states of the operations that the last answer had, by id
	answer time.Time         // when the last answer began
}

const (
	opsWatchInterval = time.Second
	opsWatchOverlap  = 10 * time.Second // what may be recorded late: the database was slow
	opsWatchLimit    = 1_000_000        // operations in one answer
)

func newOpsWatch(o *opsList, c *client.Client, cmd *cobra.Command) *opsWatch {
	w := &opsWatch{list: o, client: c, out: output.NewPrinter(cmd.OutOrStdout()), errOut: cmd.ErrOrStderr(), shown: map[string]string{}}
	if o.format.isTable() {
		w.table = output.NewTextTable(strings.Split(newOperationLayout(time.Now()).headerOf(o.format), "|"))
	}
	return w
}

// run shows the newest operations, and then each change, until ctx ends.
func (w *opsWatch) run(ctx context.Context) error {
	began := time.Now()
	first, err := w.client.Operations(ctx, w.list.query)
	if err != nil {
		return err
	}
	w.answer = began
	if err := w.show(first.Items); err != nil {
		return err
	}
	retryDelay := backoff.NewExponentialBackOff()
	retryDelay.InitialInterval, retryDelay.MaxInterval = opsWatchInterval, 15*time.Second
	wait := opsWatchInterval
	for {
		select {
		case <-ctx.Done():
			return nil // a watch has no other end
		case <-time.After(wait):
		}
		err := w.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case client.IsPermanent(err) || errors.Is(err, output.ErrWrite):
			return err
		case err != nil:
			fmt.Fprintf(w.errOut, "reading the history failed, retrying: %s\n", output.Sanitize(err.Error()))
			wait = retryDelay.NextBackOff()
		default:
			retryDelay.Reset()
			wait = opsWatchInterval
		}
	}
}

// poll shows what has changed since the last answer.
func (w *opsWatch) poll(ctx context.Context) error {
	began := time.Now()
	ago := (elapsed(w.answer, began) + opsWatchOverlap).Round(time.Millisecond).String()
	accepted, ended := w.list.query, w.list.query
	accepted.Since, accepted.Limit = ago, opsWatchLimit
	ended.Since = ""
	ended.EndedSince = ago
	ended.Limit = opsWatchLimit
	var all []client.Item[client.HistoryEntry]
	for _, q := range []client.HistoryQuery{accepted, ended} {
		part, err := w.client.Operations(ctx, q)
		if err != nil {
			return err
		}
		all = append(all, part.Items...)
	}
	w.answer = began
	return w.show(all)
}

// elapsed returns the time between two readings of the clock. While a machine sleeps, its monotonic clock stands still, and only the
// other one goes on.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// show prints the operations that are new, or whose state has changed, the oldest first.
func (w *opsWatch) show(items []client.Item[client.HistoryEntry]) error {
	slices.SortStableFunc(items, func(a, b client.Item[client.HistoryEntry]) int {
		return cmp.Or(a.Value.Accepted.Compare(b.Value.Accepted), strings.Compare(a.Value.ID, b.Value.ID))
	})
	shown := make(map[string]string, len(items))
	layout := newOperationLayout(time.Now())
	for _, item := range items {
		id, state := layout.name(item.Value), item.Value.State
		if shown[id] == state || w.shown[id] == state || shown[id] != "" && state == client.Pending { // it ended between the two answers
			shown[id] = cmp.Or(shown[id], state)
			continue
		}
		shown[id] = state
		switch {
		case w.table != nil:
			w.table.Add(layout.rows([]client.Item[client.HistoryEntry]{item}, w.list.format)[0])
		case w.list.format.value == "name":
			w.out.Line(id)
		default:
			if err := w.document(item); err != nil {
				return err
			}
		}
	}
	w.shown = shown
	if w.table != nil {
		w.out.Table(w.table)
	}
	return w.out.Flush()
}

// document prints an operation as JSON or YAML.
func (w *opsWatch) document(item client.Item[client.HistoryEntry]) error {
	text, err := manifests.Encode(item.Raw, w.list.format.value)
	if err != nil {
		return err
	}
	if w.list.format.value == "yaml" {
		text += "\n---"
	}
	w.out.Document(text)
	return nil
}
