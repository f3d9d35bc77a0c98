package store

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// TestWritesBeforeEffectsAreDurable checks that SQLite waits for the disk before an effect in a
// cluster follows, and not for changes that agents would report again. It closes one after the
// other the two connections that the store writes with.
func TestWritesBeforeEffectsAreDurable(t *testing.T) {
	w := newFixture(t)
	const normal, full = 1, 2
	for db, want := range map[*sql.DB]int{w.db: normal, w.durable: full} {
		var got int
		if err := db.QueryRowContext(t.Context(), `PRAGMA synchronous`).Scan(&got); err != nil || got != want {
			t.Errorf("got synchronous %d, %v, want %d", got, err, want)
		}
	}
	task := func(id string) TaskRow {
		return TaskRow{ID: id, RequestID: id, Server: "s", State: TaskRunning, Created: time.Now(), LastSeen: time.Now()}
	}
	id := func(n string) string { return "01JZZZZZZZZZZZZZZZZZZZZZZ" + n }
	if _, _, err := w.CreateTask(t.Context(), task(id("1"))); err != nil {
		t.Fatal(err)
	}
	w.must(w.durable.Close())
	for what, write := range map[string]func(context.Context) error{
		"begin an operation": func(ctx context.Context) error {
			return w.BeginOperation(ctx, OperationRow{ID: vedette.OperationID(id("2"))})
		},
		"create a task":  func(ctx context.Context) error { _, _, err := w.CreateTask(ctx, task(id("3"))); return err },
		"save a task":    func(ctx context.Context) error { return w.SaveTask(ctx, task(id("1"))) },
		"acquire a task": func(ctx context.Context) error { _, err := w.AcquireTask(ctx, id("1"), "s", "t"); return err },
	} {
		if write(t.Context()) == nil {
			t.Errorf("%s: got no error without the durable connection, want one", what)
		}
	}
	w.commit(1, podAt(1, 1)) // does not wait for the disk
}
