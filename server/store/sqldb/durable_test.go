package sqldb_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// TestWritesBeforeEffectsAreDurable checks that SQLite waits for the disk before an effect in a
// cluster follows, and not for changes that agents would report again. It closes one after the
// other the two connections that the store writes with.
func TestWritesBeforeEffectsAreDurable(t *testing.T) {
	f := newFixture(t)
	const normal, full = 1, 2
	writes, durable, _ := f.Pools()
	for db, want := range map[*sql.DB]int{writes: normal, durable: full} {
		var got int
		if err := db.QueryRowContext(t.Context(), `PRAGMA synchronous`).Scan(&got); err != nil || got != want {
			t.Errorf("got synchronous %d, %v, want %d", got, err, want)
		}
	}
	task := func(id string) tasks.Task {
		return tasks.Task{ID: id, RequestID: id, Server: "s", State: tasks.Running, Created: time.Now(), LastSeen: time.Now()}
	}
	id := func(n string) string { return "01JZZZZZZZZZZZZZZZZZZZZZZ" + n }
	if _, _, err := f.CreateTask(t.Context(), task(id("1"))); err != nil {
		t.Fatal(err)
	}
	f.Must(durable.Close())
	for what, write := range map[string]func(context.Context) error{
		"begin an operation": func(ctx context.Context) error {
			return f.BeginOperation(ctx, history.Operation{ID: vedette.OperationID(id("2"))})
		},
		"create a task":  func(ctx context.Context) error { _, _, err := f.CreateTask(ctx, task(id("3"))); return err },
		"save a task":    func(ctx context.Context) error { return f.SaveTask(ctx, task(id("1"))) },
		"acquire a task": func(ctx context.Context) error { _, err := f.AcquireTask(ctx, id("1"), "s", "t"); return err },
	} {
		if write(t.Context()) == nil {
			t.Errorf("%s: got no error without the durable connection, want one", what)
		}
	}
	f.CommitPods(1, storetest.PodAt(1, 1)) // does not wait for the disk
}
